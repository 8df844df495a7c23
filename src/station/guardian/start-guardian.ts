import type { Model } from "../../agent/model/model.ts";
import type { GuardianConfig } from "../../contract/guardian-config.ts";
import type { LocalStation } from "../local-station.ts";
import type { EvaluateOptions } from "./evaluate-run.ts";
import { Guardian } from "./guardian.ts";
import { askJudge } from "./judge.ts";
import { lookAtFiles } from "./look.ts";

const HOUR_MS = 3_600_000;

export interface StartGuardianOptions {
  local: LocalStation;
  settings: GuardianConfig;
  /** Opens a model by its name. */
  model: (name: string) => Promise<Model>;
  onDefect: (error: unknown) => void;
}

/** A station watches how runs get on, until this is closed. */
export function startGuardian({ local, settings, model, onDefect }: StartGuardianOptions): AsyncDisposable {
  const { runs, sessions } = local.verbs;
  const placeOf = async (run: string) => {
    const { folder, origin, session } = await runs.get(run);
    return folder ?? (origin === null ? session : JSON.stringify(origin));
  };
  const guardian = new Guardian({
    log: local.log,
    settings,
    crashpoint: local.crashpoint,
    look: inTurn(lookAtFiles(sessions)),
    judge: judgeOf({ settings, model, onDefect }),
    sameFolder: async (one, other) => (await placeOf(one)) === (await placeOf(other)),
    requeue: local.refreshQueued,
    onDefect,
  });
  guardian.start();
  return guardian;
}

/** One look at a time: what nobody waits for must not take from those who work. */
function inTurn(look: EvaluateOptions["look"]): EvaluateOptions["look"] {
  let last: Promise<unknown> = Promise.resolve();
  return (session, signal) => {
    const looking = last.then(() => look(session, signal));
    last = looking.catch(() => undefined);
    return looking;
  };
}

/** The model that judges drift, as often within an hour as it may be asked. One that fails is asked again later. */
function judgeOf({ settings, model, onDefect }: Omit<StartGuardianOptions, "local">): EvaluateOptions["judge"] {
  const { judge } = settings;
  let opened: Promise<Model> | null = null;
  let position = 0;
  let askedAtMs: number[] = [];
  return async (trajectory, signal) => {
    const { model: name, callsPerHourMax } = judge;
    const nowMs = performance.now();
    askedAtMs = askedAtMs.filter((atMs) => nowMs - atMs < HOUR_MS);
    if (name === undefined || askedAtMs.length >= callsPerHourMax) return null;
    askedAtMs.push(nowMs);
    position += 1;
    try {
      opened ??= model(name);
      return await askJudge(trajectory, { model: await opened, position, signal });
    } catch (error) {
      opened = null;
      if (!signal.aborted) onDefect(error);
      return null;
    }
  };
}
