import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ForgeRepository } from "../../../test/support/forge-repository.ts";
import type { NewJobEvent } from "../../contract/durable/durable-event.ts";
import { CaissonError } from "../../contract/error/error.ts";
import { makeEvent } from "../../contract/event/event-family.ts";
import type { ShipTarget } from "../../contract/ship/ship.ts";
import { type NewShipEvent, shipEvents } from "../../contract/ship/ship-event.ts";
import { applyToShipFacts, emptyShipFacts, type ShipFacts } from "../../contract/ship/ship-facts.ts";
import { LOCAL_OWNER } from "../../contract/token/owner.ts";
import { requestOutbound } from "../../network/outbound/request-outbound.ts";
import { mirrorFolder } from "../../workspace/git/git-mirror.ts";
import type { ChangedWork } from "../sessions/changed-work.ts";
import { decideShip } from "./decide-ship.ts";
import { createReach } from "./ship-reach.ts";
import { performStep, type ShipParts } from "./ship-steps.ts";
import { stepFailure } from "./step-failure.ts";

const ID = "ship_k3v7q2m5x4ab";
const HURRIED_MS = 200;
const BEGAN = "2026-01-02T03:04:05.000Z";

/** Simulates the death of the process. */
export class Crash extends Error {}

export interface ShipRig extends Disposable {
  parts: ShipParts;
  events: { type: string; at: string; data: unknown }[];
  state(): ShipFacts & { ended: string | null };
  /** Appends an event as another process would. */
  tell(event: NewShipEvent | NewJobEvent): void;
  /**
   * Performs steps until the ship needs a person; waiting times pass at once. `crashAt`: crashes at this point, counted
   * from 0. There is one point after each intent, each effect and each outcome.
   */
  sail(options?: { crashAt?: number }): Promise<{ points: number }>;
}

/** Creates a ship that changes `a.txt` in a repository, with its driver and a simulated clock. */
export async function makeShipRig(options: {
  target: Omit<ShipTarget, "into"> & { into?: string };
  repository: ForgeRepository;
  token?: string;
  merge?: boolean;
  file?: { path: string; before: string | null; after: string };
  /** Requests with a short timeout, because the test never answers them. */
  hurries?: RegExp;
}): Promise<ShipRig> {
  const stateDir = mkdtempSync(join(tmpdir(), "caisson-ship-"));
  const path = process.env.PATH ?? "";
  const url = "https://git.example.com/team/project.git";
  const mirror = mirrorFolder(stateDir, { url, owner: LOCAL_OWNER });
  mkdirSync(join(stateDir, "mirrors"));
  execFileSync("git", ["-c", "safe.directory=*", "clone", "--quiet", "--mirror", options.repository.path, mirror]);
  const tokenFile = join(stateDir, "token");
  await writeFile(tokenFile, options.token ?? "", { mode: 0o600 });
  const { path: file, before, after } = options.file ?? { path: "a.txt", before: "one\n", after: "two\n" };
  const side = (content: string) => ({ kind: "file" as const, mode: 0o644, content: Buffer.from(content) });
  const work: ChangedWork = {
    id: "ses_x",
    kind: "session",
    what: "the session ses_x",
    source: { kind: "git", url, submodules: false },
    commit: options.repository.branch("main"),
    changes: async () => ({
      changes: [{ path: file, from: null, before: before === null ? null : side(before), after: side(after), changedOutside: false }],
      leftOut: [],
      ignored: 0,
    }),
    readApplied: async () => new Map(),
    notesBefore: true,
    noteApplied: async () => undefined,
    keepApplied: async () => undefined,
    record: async () => undefined,
  };
  let nowMs = Date.parse(BEGAN);
  const git = { path };
  const secret = { from: { file: tokenFile }, hosts: ["127.0.0.1"], ports: [Number(portOf(options.target.remote))] };
  const send: typeof requestOutbound = (request) =>
    requestOutbound(options.hurries?.test(`${request.method} ${request.url}`) === true ? { ...request, timeoutMs: HURRIED_MS } : request);
  const reach = createReach({ git, locks: { stateDir }, send, now: () => nowMs, secretsOf: async () => ({ TOKEN: secret }) });
  const parts: ShipParts = { stateDir, git, workOf: async () => work, reach };
  const events: ShipRig["events"] = [];
  const tell: ShipRig["tell"] = (event) => void events.push(makeEvent(shipEvents, event as never, new Date(nowMs).toISOString()));
  const { into = null, ...target } = options.target;
  tell({
    type: "ship.created",
    data: {
      session: "ses_x",
      run: null,
      target: { ...target, into },
      branch: { kind: "fix", ticket: "12", slug: "two-for-one" },
      title: "Two for one",
      body: "",
      author: { name: "Agent", email: "agent@example.com" },
      tests: { kind: "waived", reason: "a test of ships" },
      merge: options.merge ?? true,
      includeConfiguration: false,
      leaveOut: false,
    },
  });
  const facts = () => {
    const folded = emptyShipFacts();
    for (const event of events) applyToShipFacts(folded, event);
    return folded;
  };
  const has = (type: string) => events.find((event) => event.type === type);
  return {
    parts,
    events,
    tell,
    state: () => ({ ...facts(), ended: (has("driven.ended")?.data as { finish: string } | undefined)?.finish ?? null }),
    async sail({ crashAt = -1 } = {}) {
      let points = 0;
      const point = () => {
        if (points++ === crashAt) throw new Crash();
      };
      while (has("driven.ended") === undefined) {
        const cancelRequested = has("driven.cancel_requested") === undefined ? null : { by: "somebody", text: "" };
        const ship = facts();
        const decision = decideShip(ship, { facts: { id: ID, cancelRequested }, now: new Date(nowMs) });
        if ("append" in decision) for (const event of decision.append) tell(event);
        else if ("end" in decision) tell({ type: "driven.ended", data: decision.end });
        else {
          const [effect] = decision.effects;
          if (effect === undefined && decision.waits?.due === undefined) return { points };
          if (effect === undefined) nowMs = decision.waits?.due?.getTime() ?? nowMs;
          else {
            const { step, attempt } = effect;
            const order = { id: ID, owner: LOCAL_OWNER, createdAt: BEGAN, created: ship.created as never, facts: ship };
            const outcome = await performStep(step, order, { ...parts, signal: new AbortController().signal }).catch((error: unknown) => {
              if (!(error instanceof CaissonError)) throw error;
              return [stepFailure(error, { step, attempt, nowMs })];
            });
            point();
            for (const event of outcome) tell(event);
          }
        }
        point();
      }
      return { points };
    },
    [Symbol.dispose]: () => rmSync(stateDir, { recursive: true, force: true }),
  };
}

function portOf(remote: string): string {
  return remote.startsWith("/") ? "443" : new URL(remote).port;
}
