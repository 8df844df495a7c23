import type { RunView } from "../../../../src/contract/run/run-verbs.ts";
import tokensCss from "../../design/tokens.css?raw";
import { cost, tokens } from "../../parts/amounts.ts";
import { type AnsiSpan, ansiSpans } from "../../parts/ansi-spans.ts";
import { duration } from "../../parts/time.tsx";
import { visibleLines, visibleText } from "../../parts/visible-text.ts";
import { diffOfArguments, subjectOf } from "./argument-diff.ts";
import type { Timeline } from "./timeline.ts";
import type { TimelineItem, ToolItem } from "./timeline-item.ts";

/** Renders a run as one file without scripts or external resources. All foreign text is escaped. */
export function runHtml(view: RunView, timeline: Timeline): string {
  const facts = [view.run, view.agent, view.model, view.finish ?? view.status, `${view.steps} steps`];
  const spent = [`${tokens(view.usage.inputTokens + view.usage.outputTokens)} tokens`, cost(view.costUsd), duration(view.workedMs)];
  const items = timeline.items.filter(({ isQuiet }) => isQuiet !== true).map(itemHtml);
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${name(view.title.slice(0, 120))}</title>
<style>${style}</style>
<main>
<h1>${name(view.title)}</h1>
<p class="quiet">${[...facts, ...spent].map(name).join(" · ")}</p>
${items.join("\n")}
</main>
</html>
`;
}

function itemHtml(item: TimelineItem): string {
  const time = `<a class="time" href="#e${item.seq}">${name(item.at.slice(11, 19))}</a>`;
  return `<article id="e${item.seq}" class="${item.kind}">${time}<div>${bodyHtml(item)}</div></article>`;
}

function bodyHtml(item: TimelineItem): string {
  switch (item.kind) {
    case "words":
      return `<p>${prose(item.text)}</p>`;
    case "thought":
      return details("Thoughts", `<p>${prose(item.text)}</p>`);
    case "tool":
      return toolHtml(item);
    case "step":
      return `Step ${item.step}`;
    case "question":
      return `<p>${prose(item.text)}</p>${item.answer === null ? "" : `<p class="quiet">${name(item.answer.answer)} by ${name(item.answer.by)}</p>`}`;
    case "message":
      return `<p>${prose(item.text)}</p><p class="quiet">${name(item.source)} · ${name(item.mode)}</p>`;
    case "denied":
      return `Denied: <code>${name(`${item.host}:${item.port}`)}</code> <span class="quiet">${prose(item.text)}</span>`;
    case "compacted":
      return details(`Summarized everything before step ${item.beforeStep}`, `<p>${prose(item.summary)}</p>`);
    case "todo":
      return `<ul>${item.todo.map(({ text, status }) => `<li>${status === "completed" ? "☑" : "☐"} ${name(text)}</li>`).join("")}</ul>`;
    case "incident":
      return `The ${name(item.subject)} was restarted: ${prose(item.text ?? item.why)}`;
    case "ended":
      return `<strong>${item.reason === "done" ? "Done" : `Ended: ${name(item.reason)}`}</strong><p>${prose(item.text)}</p>`;
    case "note":
      return `${name(item.title)}${item.text === null ? "" : ` <span class="quiet">${prose(item.text)}</span>`}`;
    default:
      item satisfies never;
      return "";
  }
}

function toolHtml(item: ToolItem): string {
  const diff = diffOfArguments(item.name, item.arguments);
  const input =
    diff === null
      ? `<pre>${prose(JSON.stringify(item.arguments, null, 2))}</pre>`
      : `<pre>${diff.map(({ sign, text }) => `<span class="${sign === "+" ? "plus" : sign === "-" ? "minus" : ""}">${sign} ${prose(text)}</span>`).join("\n")}</pre>`;
  const files = item.files.map(({ path, kind }) => `<li><code>${name(path)}</code> ${kind}</li>`).join("");
  const output = item.output === "" ? "" : `<pre>${ansiSpans(item.output).map(spanHtml).join("")}</pre>`;
  const head = `<strong>${name(item.name)}</strong> <code>${name(subjectOf(item.arguments).slice(0, 200))}</code> <span class="quiet">${item.state}</span>`;
  return `<details><summary>${head}</summary>${input}${output}</details>${files === "" ? "" : `<ul>${files}</ul>`}`;
}

/** The colors are numbers here; see `ansiSpans`. */
function spanHtml({ text, color, isBold }: AnsiSpan): string {
  const look = [color === null ? "" : `color:rgb(${color})`, isBold ? "font-weight:600" : ""].filter(Boolean).join(";");
  return look === "" ? escapeHtml(text) : `<span style="${look}">${escapeHtml(text)}</span>`;
}

const details = (title: string, body: string) => `<details><summary>${escapeHtml(title)}</summary>${body}</details>`;
const prose = (text: string) => escapeHtml(visibleLines(text));
const name = (text: string) => escapeHtml(visibleText(text));

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** The console's design tokens, and the few rules that such a page needs. */
const style = `${tokensCss}
body{margin:0;font:14px/1.5 var(--font);background:var(--page);color:var(--text)}
main{max-width:900px;margin:auto;padding:24px 16px}h1{font-size:20px;overflow-wrap:anywhere}p{margin:4px 0;white-space:pre-wrap;overflow-wrap:anywhere}
article{display:grid;grid-template-columns:64px minmax(0,1fr);gap:12px;padding:5px 0}article:target{background:var(--selected)}
.time,.quiet{color:var(--text-3);font-size:12px;text-decoration:none}.step{color:var(--text-3);border-top:1px solid var(--line)}
details{border:1px solid var(--line);border-radius:8px;padding:6px 10px}summary{cursor:pointer;overflow-wrap:anywhere}
pre{background:var(--sunken);padding:8px 12px;border-radius:5px;overflow:auto;white-space:pre-wrap;overflow-wrap:anywhere}
pre,code{font:12px/1.5 var(--mono)}ul{margin:4px 0;padding-left:18px}.plus{color:var(--good)}.minus{color:var(--bad)}`;
