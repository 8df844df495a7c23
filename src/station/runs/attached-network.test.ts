import { expect, test } from "vitest";
import { endRun } from "../../agent/end-run.ts";
import type { Journal } from "../../agent/journal.ts";
import { emptyRunState } from "../../agent/run-state.ts";
import type { NetworkEvent } from "../../contract/network-event.ts";
import type { NewRunEvent } from "../../contract/run-event.ts";
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

test("what the network did comes before the run's end, also what was to be told of together; nothing comes after it", async () => {
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
