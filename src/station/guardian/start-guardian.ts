import type { Model } from "../../agent/model/model.ts";
import type { GuardianConfig } from "../../contract/guardian/guardian-config.ts";
import { ignore } from "../../lib/failures.ts";
import type { Station } from "../../verbs/station.ts";
import type { StationCore } from "../station-core.ts";
import type { EvaluateOptions } from "./evaluate-run.ts";
import { Guardian } from "./guardian.ts";
import { askJudge } from "./judge.ts";
import { lookAtFiles } from "./look.ts";

const HOUR_MS = 3_600_000;

export interface StartGuardianOptions {
  local: { core: StationCore; queue: { refresh(run: string): Promise<void> }; verbs: Pick<Station, "runs" | "sessions"> };
  settings: GuardianConfig;
  /** Opens a model by name. */
  model: (name: string) => Promise<Model>;
  onDefect: (error: unknown) => void;
}

/** Watches the progress of a station's runs until it is disposed of. */
export function startGuardian({ local, settings, model, onDefect }: StartGuardianOptions): AsyncDisposable {
  const { runs, sessions } = local.verbs;
  const placeOf = async (run: string) => {
    const { folder, origin, session } = await runs.get(run);
    return folder ?? (origin === null ? session : JSON.stringify(origin));
  };
  const guardian = new Guardian({
    log: local.core.log,
    settings,
    crashpoint: local.core.crashpoint,
    look: inTurn(lookAtFiles(sessions)),
    judge: judgeOf({ settings, model, onDefect }),
    sameFolder: async (one, other) => (await placeOf(one)) === (await placeOf(other)),
    requeue: local.queue.refresh,
    onDefect,
  });
  guardian.start();
  return guardian;
}

/** Runs one check at a time: background work must not slow down runs. */
function inTurn(look: EvaluateOptions["look"]): EvaluateOptions["look"] {
  let last: Promise<unknown> = Promise.resolve();
  return (session, signal) => {
    const looking = last.then(() => look(session, signal));
    last = ignore(looking, "its caller awaits it; the next look does not depend on its result");
    return looking;
  };
}

/**
 * Returns the judge of drift, which calls its model within an hourly limit. A model that fails is tried again later.
 */
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
