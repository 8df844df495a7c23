import { budgetsLeft } from "../../agent/run-budgets.ts";
import type { RunNetwork } from "../../agent/run-network.ts";
import type { RunState } from "../../agent/run-state.ts";
import { CaissonError } from "../../contract/error/error.ts";
import { allowMore } from "../../contract/network/change-policy.ts";
import type { NetworkEvent } from "../../contract/network/network-event.ts";
import { parseRule, showPolicy } from "../../contract/network/network-text.ts";
import type { NewRunEvent } from "../../contract/run/run-event.ts";
import { ignore } from "../../lib/failures.ts";
import { watchPorts } from "../../network/preview/watch-ports.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";
import type { SandboxNetwork } from "../../sandbox/sandbox-network.ts";

export interface AttachedNetwork extends RunNetwork, AsyncDisposable {
  /** Makes this sandbox the run's current one. */
  attach(sandbox: OwnedSandbox): void;
}

const DENIALS_MAX = 20;
/** We merge closed connections over this time, so that a program with thousands of them does not fill the log. */
const CLOSED_MERGE_MS = 2_000;
const CLOSED_KINDS_MAX = 1_000;

type GatewayCall = Extract<NetworkEvent, { type: "gateway.called" }>["data"];
type Closed = Extract<NetworkEvent, { type: "network.closed" }>["data"];

/**
 * Records network events of the run's sandbox in the run's log: denials, failures, connections, used secrets, gateway
 * calls to models, and ports that open or close. `append` receives facts about the past, so it must not throw for
 * errors that cannot be fixed.
 */
export function createRunNetwork(options: {
  append: (events: readonly NewRunEvent[]) => Promise<void>;
  state: () => RunState;
}): AttachedNetwork {
  let current: { network: SandboxNetwork; leave: () => void } | null = null;
  const denials: string[] = [];
  const closed = new Map<string, Closed>();
  let timer: NodeJS.Timeout | undefined;
  /** Appends in progress; the run is not released before they finish. */
  let pending: Promise<unknown> = Promise.resolve();
  /** Gateway calls that are not in the run's log yet. The next call has to count them, too. */
  const uncounted = new Set<GatewayCall>();

  const append = async (events: readonly NewRunEvent[]): Promise<void> => {
    // A released or ended run accepts no more events; they are in the sandbox log.
    if (options.state().status === "ended") return;
    const appending = ignore(options.append(events), "the run was released; the sandbox log has the events");
    pending = Promise.all([pending, appending]);
    await appending;
  };
  const flush = () => {
    clearTimeout(timer);
    timer = undefined;
    const events = [...closed.values()].map((data): NewRunEvent => ({ type: "network.closed", data }));
    closed.clear();
    if (events.length > 0) void append(events);
  };
  const onEvent = (event: NetworkEvent) => {
    if (event.type === "network.closed") {
      merge(closed, event.data);
      if (closed.size >= CLOSED_KINDS_MAX) flush();
      else timer ??= setTimeout(flush, CLOSED_MERGE_MS).unref();
      return;
    }
    const isInVain = event.type === "network.denied" || event.type === "network.failed";
    if (isInVain && denials.length < DENIALS_MAX) denials.push(event.data.text);
    const appending = append([{ type: event.type, data: event.data } as NewRunEvent]);
    if (event.type !== "gateway.called") return;
    uncounted.add(event.data);
    void appending.then(() => uncounted.delete(event.data));
  };
  const networkNow = () => {
    if (current === null) throw new CaissonError("unsupported", "this run's sandbox has no network");
    return current.network;
  };
  return {
    attach(sandbox) {
      current?.leave();
      const { network } = sandbox;
      if (network === null) return;
      const stop = new AbortController();
      const unsubscribe = network.subscribe(onEvent);
      network.limitGateway(() => gatewayBudget(options.state(), [...uncounted]));
      const about = (port: number) => ({ sandbox: sandbox.id, port });
      void watchPorts({
        listeners: () => sandbox.listeners(),
        onOpened: ({ port, address }) => void append([{ type: "port.opened", data: { ...about(port), address } }]),
        onClosed: ({ port }) => void append([{ type: "port.closed", data: about(port) }]),
        signal: stop.signal,
      });
      current = {
        network,
        leave() {
          stop.abort();
          unsubscribe();
        },
      };
    },
    fetch: (request) => networkNow().fetch(request),
    async allow(text, { by }) {
      const rule = parseRule(text);
      return showPolicy(
        await networkNow().change((before) => allowMore(before, { mode: "allow", rules: [rule], registries: [], transparent: false }), {
          by,
        }),
      );
    },
    takeDenials: () => [...new Set(denials.splice(0))],
    redact: (text) => current?.network.redact(text) ?? text,
    async settle() {
      current?.network.settle();
      flush();
      await pending;
    },
    async [Symbol.asyncDispose]() {
      current?.leave();
      flush();
      await pending;
    },
  };
}

function merge(closed: Map<string, Closed>, data: Closed): void {
  const key = [data.via, data.host, data.port, data.rule, data.inspected].join(" ");
  const before = closed.get(key);
  closed.set(
    key,
    before === undefined
      ? data
      : {
          ...before,
          connections: (before.connections ?? 1) + (data.connections ?? 1),
          requests: before.requests + data.requests,
          sentBytes: before.sentBytes + data.sentBytes,
          receivedBytes: before.receivedBytes + data.receivedBytes,
          durationMs: before.durationMs + data.durationMs,
        },
  );
}

function gatewayBudget(state: RunState, uncounted: readonly GatewayCall[]): { costUsdLeft: number | null; tokensLeft: number | null } {
  const { costUsd, tokens } = budgetsLeft(state);
  const without = (left: number | null, used: (call: GatewayCall) => number) =>
    left === null ? null : Math.max(0, left - uncounted.reduce((sum, call) => sum + used(call), 0));
  return {
    costUsdLeft: without(costUsd, (call) => call.costUsd ?? 0),
    tokensLeft: without(tokens, ({ usage }) => usage.inputTokens + usage.outputTokens),
  };
}
