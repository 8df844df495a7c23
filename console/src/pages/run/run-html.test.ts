import { expect, test } from "vitest";
import type { RunView } from "../../../../src/contract/run/run-verbs.ts";
import { runHtml } from "./run-html.ts";
import { emptyTimeline, foldEvent, type NumberedEvent } from "./timeline.ts";

const evil = `</pre></title><script>alert(1)</script><img src=x onerror='alert(2)'> "q" \u202e \u001b[31mred\u001b[0m`;

test("escapes all text in the file", () => {
  const timeline = emptyTimeline();
  const events = [
    { type: "run.created", data: { task: evil, agent: { name: evil } } },
    {
      type: "model.ended",
      data: {
        call: "m1",
        parts: [
          { kind: "thought", text: evil },
          { kind: "text", text: evil },
        ],
        usage: { inputTokens: 1, outputTokens: 1 },
        costUsd: 0,
      },
    },
    { type: "tool.requested", data: { call: "t1.1", name: evil, arguments: { command: evil } } },
    { type: "file.changed", data: { call: "t1.1", path: evil, kind: "added", linesAdded: 1, linesRemoved: 0 } },
    { type: "tool.ended", data: { call: "t1.1", outcome: "ok", text: evil, durationMs: 1 } },
    { type: "tool.requested", data: { call: "t1.2", name: "edit", arguments: { path: evil, old: evil, new: evil } } },
    { type: "message.received", data: { message: "msg_a", source: "user", mode: "steer", text: evil } },
    { type: "permission.asked", data: { question: "ask_a", call: null, kind: "tool", text: evil, pattern: null } },
    { type: "permission.answered", data: { question: "ask_a", answer: "deny", by: evil } },
    { type: "network.denied", data: { host: evil, port: 1, reason: "no_network", text: evil, count: 1 } },
    { type: "todo.changed", data: { call: "t1.1", todo: [{ id: "a", text: evil, status: "pending", blockedBy: [] }] } },
    { type: "context.compacted", data: { beforeStep: 1, summary: evil, tokensBefore: 1, tokensAfter: 1 } },
    { type: "run.ended", data: { reason: "error", text: evil, steps: 1 } },
  ];
  for (const [index, event] of events.entries()) {
    foldEvent(timeline, { ...event, version: 1, at: "2026-06-01T12:00:00.000Z", seq: index + 1 } as NumberedEvent);
  }
  const view = {
    run: "run_aaaaaaaaaaaa",
    agent: evil,
    model: evil,
    title: evil,
    finish: "error",
    steps: 1,
    usage: { inputTokens: 1, outputTokens: 1 },
    costUsd: 0,
    workedMs: 1,
  };
  const html = runHtml(view as RunView, timeline);
  for (const bad of ["<script", "<img", "onerror='", "\u202e", "\u001b"]) expect(html).not.toContain(bad);
  const tags = new Set([...html.matchAll(/<\/?([a-z0-9]+)/gi)].map(([, tag]) => tag?.toLowerCase()));
  const ours = [
    "html",
    "meta",
    "title",
    "style",
    "main",
    "h1",
    "p",
    "article",
    "a",
    "div",
    "details",
    "summary",
    "pre",
    "code",
    "span",
    "strong",
    "ul",
    "li",
  ];
  expect([...tags].filter((tag) => !ours.includes(tag ?? ""))).toEqual([]);
  expect(html).toContain("default-src 'none'");
  expect(html).toContain('<span style="color:rgb(187, 0, 0)">red</span>');
});
