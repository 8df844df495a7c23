import { type Level, pino } from "pino";
import type { NewHealthEvent } from "../../contract/health/health-event.ts";
import type { NewRunEvent } from "../../contract/run/run-event.ts";
import { unreachable } from "../../lib/unreachable.ts";
import type { AnsweredRequest } from "./observer.ts";

export interface StationLog {
  request(answered: AnsweredRequest): void;
  /** Logs an event of a run that this process drives. */
  run(run: string, event: NewRunEvent): void;
  /** Logs a health event of a sandbox or a run driver. */
  health(event: NewHealthEvent): void;
  /** Logs a defect with its stack. */
  defect(error: unknown): void;
  say(text: string, facts?: Record<string, unknown>): void;
}

/** Routes that monitoring requests every few seconds. */
const watched = new Set(["healthz", "readyz", "metrics"]);

/** Writes one line of JSON for each event. Never logs tokens, queries, bodies or messages to agents. */
export function createStationLog({ level, write }: { level: Level | "silent"; write: (line: string) => void }): StationLog {
  const log = pino(
    { level, base: { pid: process.pid }, timestamp: pino.stdTimeFunctions.isoTime, formatters: { level: (label) => ({ level: label }) } },
    { write },
  );
  return {
    request({ id, method, route, status, durationMs, caller, streams }) {
      const by = callerFacts(caller);
      const facts = {
        request: id,
        method,
        route,
        status,
        durationMs: Math.round(durationMs * 10) / 10,
        ...by,
        ...(streams && { streams }),
      };
      const at = status >= 500 ? "error" : watched.has(route) ? "debug" : "info";
      log[at](facts, "request");
    },
    run(run, event) {
      const { type, data } = event;
      if (type === "run.forked")
        log.info({ run, agent: data.agent, model: data.model, session: data.session, from: data.from.run }, "run forked");
      else if (type === "run.created") log.info({ run, agent: data.agent.name, model: data.model, session: data.session }, "run created");
      else if (type === "run.claimed") log.info({ run, epoch: data.epoch }, "run claimed");
      else if (type === "run.paused") log.info({ run, why: data.why }, "run paused");
      else if (type === "run.sandboxed") log.info({ run, sandbox: data.sandbox, runtime: data.runtime, why: data.why }, "run sandboxed");
      else if (type === "model.failed")
        log.warn({ run, call: data.call, code: data.error.code, retryInMs: data.retryInMs }, "model failed");
      else if (type === "run.ended") {
        const { reason, steps, costUsd, usage } = data;
        log.info({ run, reason, steps, costUsd, inputTokens: usage.inputTokens, outputTokens: usage.outputTokens }, "run ended");
      }
    },
    health({ type, data }) {
      const of = { [data.subject.kind]: data.subject.id };
      switch (type) {
        case "health.changed":
          log[data.level === "ok" ? "info" : "warn"](
            { ...of, health: data.level, misses: data.misses, condition: data.condition },
            "health changed",
          );
          return;
        case "health.restart_started":
          log.warn({ ...of, incident: data.incident }, "restart started");
          return;
        case "health.restart_ended":
          log.warn({ ...of, incident: data.incident, outcome: data.outcome, durationMs: Math.round(data.durationMs) }, "restart ended");
          return;
        case "health.escalated":
          log.error({ ...of, incident: data.incident }, "needs a person");
          return;
        default:
          unreachable(type);
      }
    },
    defect(error) {
      const facts = error instanceof Error ? { error: error.message, stack: error.stack } : { error: String(error) };
      log.error(facts, "defect");
    },
    say: (text, facts = {}) => log.info(facts, text),
  };
}

function callerFacts(caller: AnsweredRequest["caller"]): Record<string, string> {
  if (caller === null) return {};
  if (caller.kind === "socket") return { by: "socket" };
  if (caller.kind === "code") return { code: caller.pending.view.name, owner: caller.pending.view.owner };
  return caller.kind === "sandbox" ? { sandbox: caller.sandbox } : { token: caller.token.name, owner: caller.token.owner };
}
