/** Of the page. Light and dark, as the reader's system is. */
export const style = `
:root { color-scheme: light dark; --ink: #1f2328; --faint: #8b949e; --line: #d0d7de; --paper: #fff; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --faint: #8b949e; --line: #30363d; --paper: #0d1117; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2rem; }
figure { margin: 2rem 0; } figcaption { font-weight: 600; }
svg { width: 100%; height: auto; }
.grid { stroke: var(--line); } .tick, .title { fill: var(--faint); font-size: 11px; }
.series polyline { fill: none; stroke: currentColor; stroke-width: 2; } .series circle { fill: currentColor; }
.s0 { color: #0969da; } .s1 { color: #d4622a; } .s2 { color: #2f8f5b; } .s3 { color: #b5446e; } .s4 { color: #8250df; } .s5 { color: #9a7d0a; }
.legend { margin: 0; font-size: 13px; } .key i { display: inline-block; width: 1em; height: 3px; margin: 0 .4em .25em 0; background: currentColor; } .key { margin-right: 1em; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; display: block; overflow-x: auto; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
.facts td { text-align: left; white-space: normal; } .facts td:first-child { color: var(--faint); }
.error { border-left: 3px solid #cf222e; padding-left: .6rem; }
`;
