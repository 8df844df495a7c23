import { constants } from "node:fs";
import { access, statfs } from "node:fs/promises";
import { join } from "node:path";
import { createRedactor, logText } from "../api/observe/log-line.ts";
import type { ObserveOptions } from "../api/observe/observation.ts";
import { createRunMetrics } from "../api/observe/run-metrics.ts";
import { createStationLog, type StationLog } from "../api/observe/station-log.ts";
import type { ServedLog } from "../cli/server-control.ts";
import { healthEvents, type NewHealthEvent } from "../contract/health/health-event.ts";
import type { NewRunEvent } from "../contract/run/run-event.ts";
import { isErrno } from "../lib/failures.ts";
import type { AppendListener } from "../log/observed-log.ts";
import { openLogFile } from "./log-file.ts";

/** The station accepts no new work with less free space than this. */
const FREE_BYTES_MIN = 64 * 1024 * 1024;
const RUN_PREFIX = "run/";
/** Maximum number of lines that wait for the reader of our output; further ones are counted and dropped. */
const WAITING_LINES_MAX = 1000;

export interface ObservedServer extends Disposable {
  readonly log: StationLog;
  readonly observe: ObserveOptions;
}

/** Creates the station's log, metrics and readiness check. */
export function observeServer(options: {
  stateDir: string;
  env: Readonly<Record<string, string | undefined>>;
  log: ServedLog;
  metricsWithoutToken: boolean;
  onAppended: (listener: AppendListener) => void;
}): ObservedServer {
  const { stateDir, env } = options;
  const file = options.log.file === undefined ? null : openLogFile(options.log.file);
  const redact = createRedactor(secretValues(env));
  const write = file === null ? boundedPrint(options.log.print) : (text: string) => file.write(`${text}\n`);
  const formatLine = options.log.format === "text" ? logText : (line: string) => line.trimEnd();
  const log = createStationLog({ level: options.log.level, write: (line) => write(formatLine(redact(line))) });
  const metrics = createRunMetrics();
  options.onAppended(({ stream, events }) => {
    for (const event of events) if (healthEvents.byType.has(event.type)) log.health(event as NewHealthEvent);
    if (!stream.startsWith(RUN_PREFIX)) return;
    const run = stream.slice(RUN_PREFIX.length);
    for (const event of events as readonly NewRunEvent[]) {
      metrics.take(run, event);
      log.run(run, event);
    }
  });
  return {
    log,
    observe: {
      isReady: () => isReady(stateDir),
      onRequest: log.request,
      families: metrics.families,
      metricsWithoutToken: options.metricsWithoutToken,
    },
    [Symbol.dispose]: () => file?.[Symbol.dispose](),
  };
}

/** If the reader stalls, lines beyond a thousand are dropped, and it learns how many. */
function boundedPrint(print: (text: string) => Promise<void>): (text: string) => void {
  let waiting = 0;
  let missed = 0;
  return (text) => {
    if (waiting >= WAITING_LINES_MAX) {
      missed += 1;
      return;
    }
    const lines = missed === 0 ? [text] : [`${missed} lines were dropped`, text];
    missed = 0;
    for (const each of lines) {
      waiting += 1;
      void print(each).finally(() => {
        waiting -= 1;
      });
    }
  };
}

/** Returns the values of variables whose name marks them as secret. */
function secretValues(env: Readonly<Record<string, string | undefined>>): string[] {
  const isSecret = /(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$/i;
  return Object.entries(env).flatMap(([name, value]) => (value !== undefined && isSecret.test(name) ? [value] : []));
}

async function isReady(stateDir: string): Promise<boolean> {
  const { bavail, bsize } = await statfs(stateDir);
  if (bavail * bsize < FREE_BYTES_MIN) return false;
  await access(stateDir, constants.W_OK);
  await access(join(stateDir, "log.db"), constants.W_OK).catch((error: unknown) => {
    // The file is created with the first event.
    if (!isErrno(error, "ENOENT")) throw error;
  });
  return true;
}
