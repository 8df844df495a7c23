import { CaissonError } from "../../contract/error/error.ts";
import { parseRequest } from "../../contract/error/parse-request.ts";
import { makeEvent, readableEvent } from "../../contract/event/event-family.ts";
import { RunId, SandboxId } from "../../contract/ids.ts";
import { ArtifactStored, SandboxReported } from "../../contract/inside/inside-event.ts";
import { type InsideControl, insideLimits, ReportEvent, TellInside } from "../../contract/inside/inside-verbs.ts";
import { SandboxEnded } from "../../contract/sandbox/sandbox-event.ts";
import {
  type NewSandboxLogEvent,
  type NumberedSandboxEvent,
  type SandboxFacts,
  sandboxLogEvents,
} from "../../contract/sandbox/sandbox-log-event.ts";
import { LOCAL_OWNER } from "../../contract/token/owner.ts";
import type { Log, StoredEvent } from "../../log/log.ts";
import type { Store } from "../../sandbox/store.ts";
import type { InsideVerbs } from "../../verbs/inside.ts";
import { findSandbox, noSuchSandbox } from "../names/find-sandbox.ts";
import { appendUnowned } from "../vocabulary/append-unowned.ts";
import { headOfRun } from "../vocabulary/head-of-run.ts";
import { RUN_LABEL, sandboxStream } from "../vocabulary/station-names.ts";
import { createArtifacts } from "./artifacts.ts";
import { openMailbox } from "./mailbox.ts";
import { plainJson } from "./plain-json.ts";

const EVENTS_PER_PAGE = 1000;
const PAGE_BYTES = 4 * 1024 ** 2;

type InsideEvent = Extract<NewSandboxLogEvent, { type: "sandbox.reported" | "artifact.stored" }>;

export interface LocalInsideOptions {
  stateDir: string;
  store: Store;
  log: () => Promise<Log>;
  /** Resolves an id, id prefix or name to a run. Throws `not_found`, `invalid`. */
  findRun: (word: string) => Promise<string>;
}

/** Programs inside are not trusted: what they send is stored as data only, within limits. See `InsideVerbs`. */
export function createLocalInside(options: LocalInsideOptions): InsideVerbs {
  const { store } = options;
  const artifacts = createArtifacts(options);
  const runOf = async (sandbox: SandboxId) => (await store.read(sandbox)).spec.labels[RUN_LABEL] ?? null;
  const mailOf = (sandbox: SandboxId) => openMailbox(store.dir(sandbox));
  const append = async (sandbox: SandboxId, event: InsideEvent) => {
    const log = await options.log();
    const run = await runOf(sandbox);
    if (run !== null) return { seq: await appendToRun(log, run, event) };
    return { seq: (await log.append(sandboxStream(sandbox), [makeEvent(sandboxLogEvents, event)])).lastSeq };
  };
  const controlOf = async (sandbox: SandboxId): Promise<InsideControl> => {
    const run = await runOf(sandbox);
    if (run === null) return await mailOf(sandbox).control();
    const { facts } = await headOfRun(await options.log(), run);
    if (facts.finish !== null || facts.stopRequested !== null) return "abort";
    return facts.paused === null ? "resume" : "pause";
  };
  const artifactsOf = (thing: string) => subjectOf(thing, { ...options, artifacts, runOf });
  return {
    async report(sandbox, request) {
      const { type, data } = parseRequest(ReportEvent, request, "an event");
      const plain = plainJson(data);
      if (Buffer.byteLength(JSON.stringify(plain)) > insideLimits.eventBytesMax) {
        throw new CaissonError("too_large", `the event is larger than ${insideLimits.eventBytesMax} bytes`);
      }
      return await append(sandbox, { type: SandboxReported.shape.type.value, data: { sandbox, type, data: plain } });
    },
    async takeMessages(sandbox) {
      await store.read(sandbox);
      return await mailOf(sandbox).take();
    },
    async beat(sandbox) {
      const control = await controlOf(sandbox);
      await mailOf(sandbox).beat();
      return control;
    },
    async putArtifact(sandbox, name, data) {
      const stored = await artifacts.put((await runOf(sandbox)) ?? sandbox, name, data);
      await append(sandbox, { type: ArtifactStored.shape.type.value, data: { sandbox, ...stored } });
      return stored;
    },
    async view(word) {
      const sandbox = await findSandbox(word, store);
      const mail = mailOf(sandbox);
      return { sandbox, lastBeatAt: await mail.lastBeatAt(), control: await controlOf(sandbox), waiting: await mail.waiting() };
    },
    async tell(word, request, { by }) {
      const { text, control } = parseRequest(TellInside, request, "a message");
      const sandbox = await findSandbox(word, store);
      if (control !== undefined && (await runOf(sandbox)) !== null) {
        throw new CaissonError("invalid", `sandbox ${sandbox} belongs to a run, which controls it`, {
          hint: "Pause, resume or stop the run instead.",
        });
      }
      if (control !== undefined) await mailOf(sandbox).setControl(control);
      if (text !== undefined) await mailOf(sandbox).leave({ at: new Date().toISOString(), from: by, text });
    },
    async events(word, { fromSeq = 1, limit = EVENTS_PER_PAGE, owner } = {}) {
      const log = await options.log();
      const stream = await streamOf(word, { log, store, owner });
      return (await log.read(stream, { fromSeq, limit: Math.min(limit, EVENTS_PER_PAGE), bytesMax: PAGE_BYTES })).flatMap(readable);
    },
    async *follow(word, { fromSeq = 1, signal, owner } = {}) {
      const log = await options.log();
      const stream = await streamOf(word, { log, store, owner });
      // A follower that has already read the end gets nothing more.
      if ((await factsOf(log, stream))?.life?.state === "ended" && fromSeq > (await log.lastSeq(stream))) return;
      for await (const stored of log.subscribe(stream, { fromSeq, ...(signal && { signal }) })) {
        yield* readable(stored);
        if (stored.type === SandboxEnded.shape.type.value) return;
      }
    },
    artifacts: async (thing) => artifacts.list(await artifactsOf(thing)),
    readArtifact: async (thing, name) => artifacts.read(await artifactsOf(thing), name),
  };
}

/** Resolves with the number of this event, even if other processes append at the same time. */
async function appendToRun(log: Log, run: string, event: InsideEvent): Promise<number> {
  let own = 0;
  await appendUnowned(log, run, (_, seq) => {
    own = seq + 1;
    return event;
  });
  return own;
}

const factsOf = async (log: Log, stream: string) => ((await log.head(stream))?.head ?? null) as unknown as SandboxFacts | null;

/**
 * Returns the log stream of a sandbox. A removed sandbox may still have one, which is found by its full id. Throws
 * `not_found`, `invalid`.
 */
async function streamOf(word: string, options: { log: Log; store: Store; owner: string | undefined }): Promise<string> {
  const { log, store, owner } = options;
  if (SandboxId.safeParse(word).success) {
    const stream = sandboxStream(word);
    const life = (await factsOf(log, stream))?.life ?? null;
    if (life !== null && (owner === undefined || life.owner === owner)) return stream;
  }
  const sandbox = await findSandbox(word, store);
  const { spec: config } = await store.read(sandbox);
  if (owner !== undefined && (config.owner ?? LOCAL_OWNER) !== owner) return noSuchSandbox(word);
  return sandboxStream(sandbox);
}

/** Skips events that cannot be parsed: a history for people shows what it can. */
function readable(stored: StoredEvent): NumberedSandboxEvent[] {
  const event = readableEvent(sandboxLogEvents, stored);
  return event === null ? [] : [{ ...event, seq: stored.seq }];
}

/** Returns a run, or a sandbox outside a run. A removed one is found by its full id as long as it has artifacts. */
async function subjectOf(
  thing: string,
  options: Pick<LocalInsideOptions, "store" | "findRun"> & {
    artifacts: ReturnType<typeof createArtifacts>;
    runOf: (sandbox: SandboxId) => Promise<string | null>;
  },
): Promise<string> {
  const isWhole = SandboxId.safeParse(thing).success || RunId.safeParse(thing).success;
  if (isWhole && (await options.artifacts.subjects()).includes(thing)) return thing;
  const sandbox = await findSandbox(thing, options.store).catch(notThere);
  if (sandbox === null) return await options.findRun(thing);
  return (await options.runOf(sandbox)) ?? sandbox;
}

function notThere(error: unknown): null {
  if (error instanceof CaissonError && (error.code === "not_found" || error.code === "invalid")) return null;
  throw error;
}
