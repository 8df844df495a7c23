import { expect, test } from "vitest";
import { watchPorts } from "./watch-ports.ts";

const at = (...ports: number[]) => ports.map((port) => ({ port, address: "127.0.0.1" }));

/** Each poll returns the next of these lists. After the last, the watch is stopped, or the poll fails. */
async function watch(polls: (readonly { port: number; address: string }[])[], last: "stop" | "fail" = "stop") {
  const stop = new AbortController();
  const seen: string[] = [];
  const end = await watchPorts({
    intervalMs: 1,
    signal: stop.signal,
    listeners: async () => {
      const next = polls.shift();
      if (next !== undefined) return next;
      if (last === "fail") throw new Error("gone");
      stop.abort();
      return at(9);
    },
    onOpened: ({ port, address }) => seen.push(`+${port} ${address}`),
    onClosed: ({ port }) => seen.push(`-${port}`),
  });
  return { end, seen };
}

test("reports present, new and closed ports", async () => {
  const { end, seen } = await watch([at(80), at(80, 5173), at(5173), at()]);
  expect(seen).toEqual(["+80 127.0.0.1", "+5173 127.0.0.1", "-80", "-5173"]);
  expect(end).toEqual({ why: "stopped" });
});

test("counts a port on two addresses once, and ignores the host's ports", async () => {
  const both = [
    { port: 3000, address: "0.0.0.0" },
    { port: 3000, address: "::" },
  ];
  expect((await watch([[...both, ...at(19_080, 19_081)]])).seen).toEqual(["+3000 0.0.0.0"]);
});

test("ends if the sandbox can no longer be queried", async () => {
  expect((await watch([at(1)], "fail")).end).toEqual({ why: "failed", error: new Error("gone") });
});
