import { expect, test } from "vitest";
import { endRun } from "../../agent/end-run.ts";
import type { Journal } from "../../agent/journal.ts";
import { emptyRunState } from "../../agent/run-state.ts";
import type { NetworkEvent } from "../../contract/network/network-event.ts";
import type { NewRunEvent } from "../../contract/run/run-event.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";
import { createRunNetwork } from "./attached-network.ts";

const closed = (host: string): NetworkEvent => ({
  type: "network.closed",
  version: 1,
  at: new Date(0).toISOString(),
  data: {
    sandbox: "sb_aaaaaaaaaaaa",
    host,
    port: 443,
    via: "connect",
    address: "192.0.2.1",
    rule: host,
    inspected: false,
    requests: 1,
    sentBytes: 1,
    receivedBytes: 1,
    durationMs: 1,
  },
});

test("appends network events, even merged ones, before the run's end and none after", async () => {
  const appended: NewRunEvent[] = [];
  const state = emptyRunState();
  const append = async (events: readonly NewRunEvent[]) => {
    appended.push(...events);
    if (events.some((event) => event.type === "run.ended")) state.status = "ended";
  };
  let tell: (event: NetworkEvent) => void = () => undefined;
  let counted: NetworkEvent | null = closed("counted.example");
  await using network = createRunNetwork({ append, state: () => state });
  network.attach({
    id: "sb_aaaaaaaaaaaa",
    listeners: async () => [],
    network: {
      subscribe(listener: typeof tell) {
        tell = listener;
        return () => undefined;
      },
      limitGateway: () => undefined,
      settle() {
        if (counted !== null) tell(counted);
        counted = null;
      },
    },
  } as unknown as OwnedSandbox);
  tell(closed("a.example"));
  await endRun({ journal: { state, append } as unknown as Journal, network }, { reason: "done", text: "" });
  tell(closed("late.example"));
  await network.settle();
  expect(appended.map((event) => (event.type === "network.closed" ? event.data.host : event.type))).toEqual([
    "a.example",
    "counted.example",
    "run.ended",
  ]);
});

test("a gateway call counts in the run's budget at once, and only once", async () => {
  const state = { ...emptyRunState(), budgets: { tokens: 900, costUsd: 1 } };
  const logged = Promise.withResolvers<void>();
  let tell: (event: NetworkEvent) => void = () => undefined;
  let left: () => unknown = () => undefined;
  await using network = createRunNetwork({ append: () => logged.promise, state: () => state });
  network.attach({
    id: "sb_aaaaaaaaaaaa",
    listeners: async () => [],
    network: {
      subscribe(listener: typeof tell) {
        tell = listener;
        return () => undefined;
      },
      limitGateway(budget: typeof left) {
        left = budget;
      },
      settle: () => undefined,
    },
  } as unknown as OwnedSandbox);
  expect(left()).toEqual({ costUsdLeft: 1, tokensLeft: 900 });
  const usage = { inputTokens: 700, outputTokens: 300, cachedInputTokens: 0, reasoningTokens: 0 };
  tell({ type: "gateway.called", version: 1, at: "", data: { usage, costUsd: 0.25 } } as NetworkEvent);
  expect(left()).toEqual({ costUsdLeft: 0.75, tokensLeft: 0 });
  state.usage = { ...state.usage, inputTokens: 700, outputTokens: 100 };
  logged.resolve();
  await network.settle();
  expect(left()).toEqual({ costUsdLeft: 1, tokensLeft: 100 });
});
