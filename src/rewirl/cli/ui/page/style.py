"""The page of `rewirl inspect --html`: HTML frame and style, light or dark."""

PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>
:root { color-scheme: light dark; --back: #f6f7f9; --card: #fff; --text: #1c2330; --soft: #66707f; --line: #e3e6eb;
  --main: #2f80ed; --fill: #e9edf3; --up: #1e8e5a; --down: #c8423d;
  --s0: #2f80ed; --s1: #16a085; --s2: #d35400; --s3: #e0a100; --s4: #8e44ad; --s5: #c2569b; }
@media (prefers-color-scheme: dark) { :root { --back: #12151b; --card: #1a1f28; --text: #e4e8ef; --soft: #95a0b0;
  --line: #2c333f; --main: #5aa0ff; --fill: #262d39; --up: #4fd08f; --down: #ff7a72;
  --s0: #5aa0ff; --s1: #3ecfb0; --s2: #ff9a4d; --s3: #ffd24d; --s4: #c48df0; --s5: #f08cc5; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--text); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 960px; margin: 0 auto; padding: 28px 16px 48px; }
h1 { font-size: 26px; margin: 0 0 14px; letter-spacing: -0.01em; }
h2 { font-size: 17px; margin: 0 0 12px; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 12px; padding: 18px 20px;
  margin-top: 16px; }
.facts { display: flex; flex-wrap: wrap; gap: 8px; }
.facts div { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 8px 14px; }
.facts b { display: block; font-size: 18px; font-variant-numeric: tabular-nums; }
.facts span, .small, figcaption, thead th { color: var(--soft); font-size: 13px; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: 4px 12px 4px 0; border-bottom: 1px solid var(--line); white-space: nowrap; }
tbody th { font-weight: 500; vertical-align: top; }
thead th { font-weight: 400; }
.bar { display: flex; align-items: center; gap: 8px; min-width: 170px; }
.bar > div { position: relative; flex: 1; height: 9px; border-radius: 3px; background: var(--fill); }
.bar s { display: block; height: 100%; border-radius: 3px; background: var(--main); }
.bar u { position: absolute; top: -3px; bottom: -3px; width: 2px; background: var(--text); opacity: 0.65; }
.bar span { min-width: 62px; }
i { font-style: normal; font-size: 12px; } .up { color: var(--up); } .down { color: var(--down); }
figure { margin: 0 0 18px; } figcaption { margin-top: 6px; }
svg { width: 100%; max-width: 720px; height: auto; display: block; }
.matrix { width: 100%; display: block; image-rendering: pixelated; background: var(--fill); border-radius: 4px; }
.square .matrix { max-width: 560px; aspect-ratio: 1; }
.rows { display: grid; grid-template-columns: max-content 1fr; gap: 10px; height: calc(var(--rows) * 17px); }
.rows .matrix { height: 100%; }
.names { display: grid; grid-template-rows: repeat(var(--rows), 17px); font-size: 12px; line-height: 17px;
  text-align: right; }
.side { display: grid; grid-template-columns: repeat(auto-fit, minmax(250px, 1fr)); gap: 24px; }
.grid { stroke: var(--line); } .axis { fill: var(--soft); font-size: 9.5px; }
.label { fill: var(--text); font-size: 9.5px; }
.series { fill: none; stroke-width: 2; } text.series { stroke: none; }
.s0 { stroke: var(--s0); } .s1 { stroke: var(--s1); } .s2 { stroke: var(--s2); }
.s3 { stroke: var(--s3); } .s4 { stroke: var(--s4); } .s5 { stroke: var(--s5); }
text.s0 { fill: var(--s0); } text.s1 { fill: var(--s1); } text.s2 { fill: var(--s2); }
text.s3 { fill: var(--s3); } text.s4 { fill: var(--s4); } text.s5 { fill: var(--s5); }
rect.bar, .heat { fill: var(--main); } .heat { shape-rendering: crispEdges; }
@media (max-width: 560px) { main { padding: 18px 10px 32px; } section { padding: 14px 12px; } h1 { font-size: 21px; }
  .bar { min-width: 110px; } .bar span { min-width: 52px; } .names { font-size: 10px; }
  svg .axis, svg .label { font-size: 11px; } }
</style>
</head>
<body><main>
<h1>$title</h1>
<div class="facts">$facts</div>
$sections
</main></body>
</html>
"""
