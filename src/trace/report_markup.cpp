#include "trace/report_page.h"

namespace tandem::trace::page {

const std::string_view kMarkup = R"html(<header>
  <h1 id="heading"></h1>
  <dl id="summary"></dl>
</header>
<main>
  <div id="bar">
    <div id="tools" role="toolbar" aria-label="View">
      <span class="group">
        <button id="fit" title="Whole time range (0)">Fit</button>
        <button id="closer" title="Zoom in (+)" aria-label="Zoom in">+</button>
        <button id="wider" title="Zoom out (-)" aria-label="Zoom out">&minus;</button>
      </span>
      <span class="group">
        <button id="open" title="Show every lane">Expand all</button>
        <button id="close" title="Show one summary a PE">Collapse all</button>
      </span>
      <span class="group">
        <button id="path" aria-pressed="true" title="The chain of spans that decided the end (C)">Critical path</button>
        <label title="auto: all when few are in view, else those of the span pointed at">Arrows <select id="arrows">
          <option value="auto">auto</option><option value="all">all</option><option value="one">hovered</option>
        </select></label>
        <button id="theme" title="Light or dark">Theme</button>
      </span>
      <ul id="legend" aria-label="Legend"></ul>
    </div>
    <canvas id="axis" aria-hidden="true"></canvas>
  </div>
  <div id="timelines"></div>
</main>
<footer>
  Wheel: zoom &middot; drag: pan &middot; shift + wheel: pan &middot; click: hold a span and its arrows &middot; double click: zoom to a span.
  Keys on a timeline: <kbd>+</kbd> <kbd>-</kbd> zoom, <kbd>&larr;</kbd> <kbd>&rarr;</kbd> pan, or the span before and after the held one,
  <kbd>0</kbd> fit, <kbd>C</kbd> critical path, <kbd>Esc</kbd> let go.
</footer>
<div id="tip" role="tooltip" hidden></div>
<div id="spoken" class="unseen" aria-live="polite"></div>
<noscript>This page draws its timelines with JavaScript.</noscript>
)html";

}  // namespace tandem::trace::page
