"""Templates for the C99 source of a policy. `$name` is the prefix of every identifier, `$NAME` of every macro."""

HEADER = """\
/* $name: $about
 *
 * C99; $needs; allocates nothing; holds no state.
 *
 * network  $network
$layers
 * memory   $flash bytes of constants (flash) and $ram bytes that $name_act() works in (RAM),
 *          both checked by the compiler; the code itself is some hundred bytes more
 */
#ifndef $NAME_H
#define $NAME_H

#define $NAME_N_OBS $n_obs
#define $NAME_N_ACT $n_act
#define $NAME_FLASH_BYTES $flashL
#define $NAME_RAM_BYTES $ramL

#ifdef __cplusplus
extern "C" {
#endif

/* Where $name_act() works: static, on the stack, anywhere. One for each thread that acts. */
typedef struct {
$memory
} $name_memory;

$declared;

#ifdef __cplusplus
}
#endif

#endif
"""

SOURCE = """\
/* $name: see $name.h. Made by rewirl; not for editing. */
#include "$name.h"

$includes

$arrays
/* C99 has no static assertion: an array of -1 elements is what stops the compiler. */
typedef char $name_flash_is_as_stated[($sizes) == $NAME_FLASH_BYTES ? 1 : -1];
typedef char $name_ram_is_as_stated[sizeof($name_memory) == $NAME_RAM_BYTES ? 1 : -1];

$functions
$defined
"""

BOX = {
    "needs": "needs nothing but tanhf() of the C library's math part (-lm)",
    "includes": "#include <math.h>\n#include <stdint.h>",
    "declared": """\
/* The action for one observation: $n_obs numbers in, $n_act numbers out, inside the action box. */
void $name_act(const float *observation, float *action, $name_memory *memory)""",
    "defined": """\
void $name_act(const float *observation, float *action, $name_memory *memory)
{
    int32_t i;
$unused$calls
    for (i = 0; i < $NAME_N_ACT; ++i) {
        const float a = $name_center[i] + $name_half[i] * tanhf(action[i]);
        action[i] = a < $name_low[i] ? $name_low[i] : a > $name_high[i] ? $name_high[i] : a;
    }
}""",
    "variables": "float observation[$NAME_N_OBS], action[$NAME_N_ACT];",
    "printed": """\
        $name_act(observation, action, &memory);
        for (i = 0; i < $NAME_N_ACT; ++i)
            printf("%.9g%c", (double)action[i], i + 1 < $NAME_N_ACT ? ' ' : '\\n');""",
}
"""The parts that depend on the actions: numbers inside a box."""

CHOICE = {
    "needs": "needs no library",
    "includes": "#include <stdint.h>",
    "declared": """\
/* The action for one observation of $n_obs numbers: one of $n_act, from $first on. The first of equally good ones. */
long $name_act(const float *observation, $name_memory *memory)""",
    "defined": """\
long $name_act(const float *observation, $name_memory *memory)
{
    float *const action = memory->outputs;
    int32_t i, best = 0;
$calls
    for (i = 1; i < $NAME_N_ACT; ++i)
        if (action[i] > action[best])
            best = i;
    return $first + (long)best;
}""",
    "variables": "float observation[$NAME_N_OBS];",
    "printed": """\
        printf("%ld\\n", $name_act(observation, &memory));""",
}
"""The same for discrete actions."""

WEIGHT = {
    "f32": "typedef float $name_weight;\n#define $NAME_VALUE(w) (w)\n#define $NAME_INPUT(x) (x)\n",
    "f16": """\
typedef uint16_t $name_weight;
#define $NAME_VALUE(w) $name_value(w)
#define $NAME_INPUT(x) (x)

/* Half precision: its exponent moved to where a float has it, 2^112 too low, which the product puts right. */
static float $name_value(uint16_t half)
{
    union {
        uint32_t bits;
        float value;
    } u;
    u.bits = ((uint32_t)(half & 0x8000u) << 16) | ((uint32_t)(half & 0x7fffu) << 13);
    return u.value * 0x1p112f;
}
""",
    "int8": """\
typedef int8_t $name_weight;
#define $NAME_VALUE(w) ((float)(w))
/* Smaller by a power of two, which $name_end undoes: no sum of finite inputs overflows before it is scaled. */
#define $NAME_INPUT(x) ((x) * 0x1p-24f)
""",
}
"""The type of a stored weight, and its value."""

BEGIN = {
    "f32": """\
static void $name_begin(int32_t n_out, const float *bias, float *y)
{
    int32_t o;
    for (o = 0; o < n_out; ++o)
        y[o] = bias[o];
}
""",
    "int8": """\
static void $name_begin(int32_t n_out, float *y)
{
    int32_t o;
    for (o = 0; o < n_out; ++o)
        y[o] = 0.0f;
}

static void $name_end(int32_t n_out, const float *scale, const float *bias, float *y)
{
    int32_t o;
    for (o = 0; o < n_out; ++o)
        y[o] = y[o] * (scale[o] * 0x1p24f) + bias[o];
}
""",
}
BEGIN["f16"] = BEGIN["f32"]

NORMALISE = """\
/* (x - mean) / std, clipped: what the network gets. */
static void $name_normalise(const float *x, float *y)
{
    int32_t i;
    for (i = 0; i < $NAME_N_OBS; ++i) {
        const float seen = (x[i] - $name_mean[i]) / $name_std[i];
        y[i] = seen < -$clip ? -$clip : seen > $clip ? $clip : seen;
    }
}
"""

RELU = """\
static void $name_relu(int32_t n, float *y)
{
    int32_t o;
    for (o = 0; o < n; ++o)
        if (y[o] < 0.0f)
            y[o] = 0.0f;
}
"""

COUNT = """\
/* Links of input i: one byte each, or two where some input has more than 255. */
static int32_t $name_count(const uint8_t *counts, int32_t wide, int32_t i)
{
    return wide ? counts[2 * i] | (int32_t)counts[2 * i + 1] << 8 : counts[i];
}
"""

# Links are in the order of their inputs: links of an input that is 0 are skipped, and many are 0 after a ReLU.
LINKS = {
    "dense": """\
/* Every link. */
static void $name_dense(int32_t n_in, int32_t n_out, const $name_weight *w, const float *x, float *restrict y)
{
    int32_t i, o;
    for (i = 0; i < n_in; ++i, w += n_out) {
        const float xi = $NAME_INPUT(x[i]);
        if (xi == 0.0f)
            continue;
        for (o = 0; o < n_out; ++o)
            y[o] += xi * $NAME_VALUE(w[o]);
    }
}
""",
    "bitmap": """\
#ifdef __GNUC__
#define $NAME_LOWEST(bits) __builtin_ctzl(bits)
#else
#define $NAME_LOWEST(bits) $name_lowest(bits)
static int $name_lowest(unsigned long bits)
{
    int n = 0;
    for (; !(bits & 1u); bits >>= 1)
        ++n;
    return n;
}
#endif

/* A bit for each output: does this input reach it? */
static void $name_bitmap(int32_t n_in, int32_t n_out, const uint8_t *links, const uint8_t *counts, int32_t wide,
                         const $name_weight *w, const float *x, float *restrict y)
{
    const int32_t n_bytes = (n_out + 7) / 8;
    int32_t i, k;
    for (i = 0; i < n_in; ++i, links += n_bytes) {
        const float xi = $NAME_INPUT(x[i]);
        if (xi == 0.0f) {
            w += $name_count(counts, wide, i);
            continue;
        }
        for (k = 0; k < n_bytes; k += 4) {
            const int32_t left = n_bytes - k;
            unsigned long bits = links[k];
            if (left > 1)
                bits |= (unsigned long)links[k + 1] << 8;
            if (left > 2)
                bits |= (unsigned long)links[k + 2] << 16;
            if (left > 3)
                bits |= (unsigned long)links[k + 3] << 24;
            for (; bits; bits &= bits - 1, ++w)
                y[8 * k + $NAME_LOWEST(bits)] += xi * $NAME_VALUE(*w);
        }
    }
}
""",
    "deltas": """\
/* From each link to the next one of the same input, so many outputs on. */
static void $name_deltas(int32_t n_in, const uint8_t *links, const uint8_t *counts, int32_t wide,
                         const $name_weight *w, const float *x, float *y)
{
    int32_t i;
    for (i = 0; i < n_in; ++i) {
        const float xi = $NAME_INPUT(x[i]);
        int32_t n = $name_count(counts, wide, i);
        float *at = y;
        if (xi == 0.0f) {
            w += n;
            links += n;
            continue;
        }
        for (; n > 0; --n) {
            at += *links++;
            *at += xi * $NAME_VALUE(*w++);
        }
    }
}
""",
    "indices": """\
/* The output of each link. */
static void $name_indices(int32_t n_in, const uint16_t *links, const uint8_t *counts, int32_t wide,
                          const $name_weight *w, const float *x, float *y)
{
    int32_t i;
    for (i = 0; i < n_in; ++i) {
        const float xi = $NAME_INPUT(x[i]);
        int32_t n = $name_count(counts, wide, i);
        if (xi == 0.0f) {
            w += n;
            links += n;
            continue;
        }
        for (; n > 0; --n)
            y[*links++] += xi * $NAME_VALUE(*w++);
    }
}
""",
}
"""A layer's sum over links, for each encoding."""

MAIN = """\
/* Acts on observations from standard input, $n_obs numbers each, and prints the actions, one a line.
 *
 *     cc -std=c99 -O2 $name.c $name_main.c -lm -o $name && echo "$zeros" | ./$name
 */
#include <stdio.h>

#include "$name.h"

static $name_memory memory;

int main(void)
{
    $variables
    for (;;) {
        int i;
        for (i = 0; i < $NAME_N_OBS; ++i)
            if (scanf("%f", &observation[i]) != 1)
                return i == 0 ? 0 : 1;
$printed
    }
}
"""
