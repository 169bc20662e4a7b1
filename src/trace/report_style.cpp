#include "trace/report_page.h"

namespace tandem::trace::page {

// The colours of span kinds, --k-<kind>, come from kind_colours; the script reads them for the canvas.
const std::string_view kStyle = R"css(
:root {
  color-scheme: light;
  --bg: #f6f7f9; --card: #ffffff; --ink: #14181f; --ink2: #5a6472; --line: #dfe3e9; --grid: #e9ecf0;
  --track: #eef0f3; --hatch: #d9dde3; --accent: #1d5fd1; --path: #d6006c; --arrow: #3b4350; --ends: #14181f;
}
:root.dark {
  color-scheme: dark;
  --bg: #0e1116; --card: #161b22; --ink: #e8ecf1; --ink2: #98a3b1; --line: #2b323c; --grid: #232a33;
  --track: #1f252e; --hatch: #333c48; --accent: #6ea8fe; --path: #ff5fa8; --arrow: #c4ccd6; --ends: #e8ecf1;
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--bg); color: var(--ink); font: 14px/1.4 system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
header, main, footer { max-width: 1800px; margin: 0 auto; padding: 0 20px; }
header { padding-top: 20px; }
h1 { font-size: 20px; margin: 0 0 12px; letter-spacing: -0.01em; }
h2 { font-size: 15px; margin: 0; }
#summary { display: flex; flex-wrap: wrap; gap: 8px; margin: 0 0 12px; }
#summary div { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 7px 13px; min-width: 92px; }
#summary dt { color: var(--ink2); font-size: 12px; }
#summary dd { margin: 0; font-size: 17px; font-weight: 600; font-variant-numeric: tabular-nums; }
#bar { position: sticky; top: 0; z-index: 3; background: var(--bg); padding: 8px 0 0; }
#tools { display: flex; flex-wrap: wrap; gap: 6px 14px; align-items: center; padding-bottom: 8px; }
#tools .group { display: flex; gap: 4px; align-items: center; }
button, select { font: inherit; font-size: 13px; color: var(--ink); background: var(--card); border: 1px solid var(--line); border-radius: 6px; padding: 3px 9px; cursor: pointer; }
button:hover, select:hover { border-color: var(--ink2); }
button[aria-pressed="true"] { border-color: var(--path); box-shadow: inset 0 0 0 1px var(--path); }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; }
#legend { display: flex; flex-wrap: wrap; gap: 3px 12px; margin: 0 0 0 auto; padding: 0; list-style: none; font-size: 12px; color: var(--ink2); }
#legend i { display: inline-block; width: 11px; height: 11px; border-radius: 3px; margin-right: 5px; vertical-align: -1px; }
#legend i.idle { background: repeating-linear-gradient(135deg, var(--track) 0 2.5px, var(--hatch) 2.5px 4px); }
#legend i.path { height: 3px; vertical-align: 3px; background: var(--path); }
#axis { display: block; width: 100%; height: 24px; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; margin: 0 0 14px; overflow: clip; }
.title { display: flex; flex-wrap: wrap; gap: 2px 14px; align-items: baseline; padding: 9px 12px 8px; border-bottom: 1px solid var(--line); }
.title .time { font-weight: 600; font-variant-numeric: tabular-nums; }
.title .note { color: var(--ink2); font-size: 12.5px; }
.mix { display: flex; width: 180px; height: 9px; border-radius: 3px; overflow: hidden; background: var(--track); align-self: center; margin-left: auto; }
.mix + .note { max-width: 60%; }
.rows { position: relative; touch-action: none; cursor: crosshair; }
.rows.grab { cursor: grabbing; }
.rows canvas { position: sticky; display: block; width: 100%; }
.names { position: absolute; inset: 0 auto 0 0; width: 0; z-index: 1; }
.names > * { position: absolute; left: 0; width: 150px; padding: 0 6px 0 12px; display: flex; justify-content: space-between; align-items: center; white-space: nowrap; font-size: 11.5px; color: var(--ink2); overflow: hidden; }
.names > button { background: none; border: 0; border-radius: 0; justify-content: flex-start; gap: 5px; font-size: 12.5px; font-weight: 600; color: var(--ink); }
.names > button:hover { color: var(--accent); }
.names span { overflow: hidden; text-overflow: ellipsis; }
.names b { font-weight: 500; font-variant-numeric: tabular-nums; padding-left: 6px; }
#tip { position: fixed; z-index: 9; pointer-events: none; max-width: 420px; background: var(--card); border: 1px solid var(--ink2); border-radius: 8px; padding: 7px 10px; font-size: 12.5px; box-shadow: 0 4px 18px rgb(0 0 0 / 0.25); }
#tip strong { display: block; overflow-wrap: anywhere; }
#tip strong i { display: inline-block; width: 10px; height: 10px; border-radius: 3px; margin-right: 6px; }
#tip dl { display: grid; grid-template-columns: auto 1fr; gap: 0 12px; margin: 3px 0 0; font-variant-numeric: tabular-nums; }
#tip dt { color: var(--ink2); }
#tip dd { margin: 0; overflow-wrap: anywhere; }
footer { color: var(--ink2); font-size: 12.5px; padding-bottom: 24px; }
kbd { font: inherit; border: 1px solid var(--line); border-radius: 4px; padding: 0 4px; background: var(--card); }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
@media print { #tools button, #tools select, footer { display: none; } }
)css";

}  // namespace tandem::trace::page
