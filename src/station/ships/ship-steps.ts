import { rm } from "node:fs/promises";
import { CaissonError } from "../../contract/error.ts";
import type { ShipStep } from "../../contract/ship.ts";
import type { NewShipEvent } from "../../contract/ship-event.ts";
import type { ShipFacts } from "../../contract/ship-facts.ts";
import type { KeptRepository } from "../../workspace/git/kept-repository.ts";
import { isAncestor, knownOf, packOf } from "../../workspace/git/packs.ts";
import type { GitRemote } from "../../workspace/git/remote.ts";
import type { RemoteRefs } from "../../workspace/git/wire/advertised-refs.ts";
import type { ChangedWork } from "../sessions/changed-work.ts";
import { branchName, freeBranch } from "./branch-name.ts";
import { bringCommit } from "./bring-commit.ts";
import type { Forge, NewRequest, RequestView } from "./forges/forge.ts";
import { commitWork, openShipRepository, type ShipPlace, shipFolder } from "./ship-commit.ts";

export interface ShipParts extends ShipPlace {
  /** The changes of a session, which nobody works in. */
  workOf(session: string): Promise<ChangedWork>;
  /** Where a ship goes, with its own repository at hand. */
  reach(order: ShipOrder, own: KeptRepository, signal: AbortSignal): { remote: GitRemote; forge: Forge };
}

/** A ship that something is to be done for. */
export interface ShipOrder {
  id: string;
  owner: string;
  createdAt: string;
  created: NonNullable<ShipFacts["created"]>;
  facts: Readonly<ShipFacts>;
}

/**
 * Does a step of a ship, or finds that it was done: each looks at the remote before it acts, and again afterwards.
 * Resolves with what became true. Throws `unavailable`, `timeout` and `busy` for what is worth another try; after
 * anything else somebody has to look.
 */
export async function performStep(step: ShipStep, order: ShipOrder, parts: ShipParts & { signal: AbortSignal }): Promise<NewShipEvent[]> {
  if (step === "commit")
    return [{ type: "ship.committed", data: await commitWork(order, await parts.workOf(order.created.session), parts) }];
  const { committed } = order.facts;
  // Cancelled before there was anything to take back.
  if (committed === null) return await forget(order, parts, { type: "ship.closed", data: {} });
  await using own = await openShipRepository(order.id, committed, parts);
  const at: Reached = { order, own, commit: committed.commit, ...parts.reach(order, own, parts.signal) };
  switch (step) {
    case "push":
      return [await push(at)];
    case "request":
      return [await request(at)];
    case "check":
      return [await check(at)];
    case "merge":
      return [await merge(at)];
    case "remove_branch":
      return await forget(order, parts, await removeBranch(at));
    case "close": {
      const merged = await close(at);
      return merged === null ? await forget(order, parts, { type: "ship.closed", data: {} }) : [merged];
    }
  }
}

interface Reached {
  order: ShipOrder;
  own: KeptRepository;
  commit: string;
  remote: GitRemote;
  forge: Forge;
}

/** What is elsewhere, or wanted by nobody, is kept no longer. */
async function forget({ id }: ShipOrder, { stateDir }: ShipPlace, event: NewShipEvent): Promise<NewShipEvent[]> {
  await rm(shipFolder(stateDir, id), { recursive: true, force: true });
  return [event];
}

const HEADS = "refs/heads/";

async function push({ order, own, commit, remote }: Reached): Promise<NewShipEvent> {
  const { refs, head, capabilities } = await remote.refs();
  refuseOtherFormat(commit, { refs, capabilities });
  const into = order.created.target.into ?? (head?.startsWith(HEADS) ? head.slice(HEADS.length) : null);
  if (into === null || !refs.has(`${HEADS}${into}`)) {
    const which = into === null ? "does not say which branch is its default" : `has no branch ${into}`;
    throw new CaissonError("not_found", `the remote ${which}`, {
      hint: `Name the branch to merge into: caisson ship ${order.id} --into BRANCH`,
    });
  }
  const taken = new Map([...refs].flatMap(([ref, at]) => (ref.startsWith(HEADS) ? [[ref.slice(HEADS.length), at] as const] : [])));
  const branch = freeBranch(branchName(order.created.branch), { taken, ours: commit });
  let said = "";
  if (taken.get(branch) !== commit) {
    const pack = await packOf(own, { wants: [commit], haves: await knownOf(own, [...refs.values()]) });
    ({ said } = await remote.push([{ ref: `${HEADS}${branch}`, from: null, to: commit }], pack).catch((error: unknown) => {
      throw isMoved(error) ? new CaissonError("busy", "somebody else was faster with a branch of that name", { cause: error }) : error;
    }));
  }
  return { type: "ship.pushed", data: { branch, commit, into, ...(said !== "" && { said }) } };
}

/** Commits of one kind mean nothing to a repository of the other: nothing is sent then. */
function refuseOtherFormat(commit: string, { refs, capabilities }: Pick<RemoteRefs, "refs" | "capabilities">): void {
  const formatOf = (hash: string) => (hash.length === 64 ? "sha256" : "sha1");
  const [first] = refs.values();
  const theirs = capabilities.has("object-format=sha256") ? "sha256" : first === undefined ? null : formatOf(first);
  if (theirs === null || theirs === formatOf(commit)) return;
  throw new CaissonError("unsupported", `the remote is a ${theirs} repository, and the work began from a ${formatOf(commit)} one`, {
    hint: `Git cannot bring commits of the one into the other. Ship to a ${formatOf(commit)} repository.`,
  });
}

/** A ref was not where it had just been: another look helps. */
function isMoved(error: unknown): boolean {
  return error instanceof CaissonError && error.code === "conflict" && error.details?.ref !== undefined;
}

async function request(at: Reached): Promise<NewShipEvent> {
  const asked = requestOf(at);
  const found = await at.forge.find(asked);
  if (found?.state === "closed") throw closed(found);
  const { id } = found ?? (await at.forge.open(asked));
  const { url, head, state } = await at.forge.look(id, asked);
  if (head !== at.commit && state !== "merged")
    throw new CaissonError("conflict", `the pull request ${url} brings another commit than the one that was pushed`);
  return { type: "ship.requested", data: { request: { id, url } } };
}

function requestOf({ order: { created, facts }, commit }: Reached): NewRequest {
  const { pushed } = facts;
  if (pushed === null) throw new CaissonError("internal", "a pull request needs a branch");
  return { title: created.title, body: created.body, branch: pushed.branch, into: pushed.into, commit };
}

async function check(at: Reached): Promise<NewShipEvent> {
  const { view, merged } = await look(at);
  if (merged !== null) return merged;
  checkMergeable(view, at.commit);
  return { type: "ship.checked", data: {} };
}

async function merge(at: Reached): Promise<NewShipEvent> {
  const { view, merged } = await look(at);
  if (merged !== null) return merged;
  checkMergeable(view, at.commit);
  await at.forge.merge(view.id, requestOf(at)).catch((error: unknown) => {
    throw isMoved(error) ? new CaissonError("busy", "the branch that it is merged into moved meanwhile", { cause: error }) : error;
  });
  const after = await look(at);
  if (after.merged !== null) return after.merged;
  throw new CaissonError("unavailable", "the merge was said to have worked, and the branch does not have it", {
    hint: "Look at it there; what the remote says cannot be relied on.",
  });
}

/** The request as its forge shows it, and, read from the repository itself, whether the target's branch has it. */
async function look(at: Reached): Promise<{ view: RequestView; merged: NewShipEvent | null }> {
  const { own, remote, forge, commit, order } = at;
  const asked = requestOf(at);
  const tip = (await remote.refs()).refs.get(`${HEADS}${asked.into}`);
  if (tip === undefined) throw new CaissonError("not_found", `the remote has no branch ${asked.into} any more`);
  await bringCommit(tip, { own, remote, haves: [commit] });
  const view = await forge.look(order.facts.request?.id ?? "", asked);
  if (await isAncestor(own, commit, tip)) return { view, merged: { type: "ship.merged", data: { commit: tip } } };
  if (view.state !== "merged") return { view, merged: null };
  throw new CaissonError("unavailable", `the pull request is said to be merged, and ${asked.into} does not have its commit`, {
    hint: `Was it squashed or rebased there? Then there is nothing left to do but to end it: caisson ship cancel ${order.id}`,
  });
}

function checkMergeable(view: RequestView, commit: string): void {
  if (view.state === "closed") throw closed(view);
  if (view.head !== commit)
    throw new CaissonError("conflict", "the branch has other commits by now than the one that was pushed", {
      hint: "Merge the pull request there, or cancel the ship.",
    });
  if (view.mergeable === "no")
    throw new CaissonError("conflict", `the pull request cannot be merged: ${view.why ?? "its forge says so"}`, {
      hint: "Conflicts are never resolved blindly: bring the branch up to date, then `caisson ship resume`.",
    });
  if (view.mergeable === "unknown") throw new CaissonError("busy", view.why ?? "the forge does not say yet whether it can be merged");
}

function closed({ url }: RequestView): CaissonError {
  return new CaissonError("conflict", `the pull request ${url} was closed`, {
    hint: "Open it again and `caisson ship resume`, or cancel the ship.",
  });
}

async function removeBranch({ order, remote, forge, commit }: Reached): Promise<NewShipEvent> {
  const { pushed, request } = order.facts;
  const branch = pushed?.branch ?? "";
  const ref = `${HEADS}${branch}`;
  const { refs } = await remote.refs();
  const own = request === null ? [] : forge.ownRefs(request.id);
  const gone = [...(refs.get(ref) === commit ? [ref] : []), ...own.filter((each) => refs.has(each))];
  for (const each of gone) await remote.push([{ ref: each, from: refs.get(each) ?? null, to: null }], null);
  // Somebody pushed more to it: then it is theirs.
  const isGone = !refs.has(ref) || gone.includes(ref);
  return { type: "ship.branch_removed", data: { branch, isGone } };
}

/** Closes what may have been opened; or finds that it was merged before. The branch stays. */
async function close(at: Reached): Promise<NewShipEvent | null> {
  if (at.order.facts.pushed === null) return null;
  const asked = requestOf(at);
  const request = at.order.facts.request ?? (await at.forge.find(asked));
  if (request === null) return null;
  const tip = (await at.remote.refs()).refs.get(`${HEADS}${asked.into}`);
  if (tip !== undefined) {
    await bringCommit(tip, { own: at.own, remote: at.remote, haves: [at.commit] });
    if (await isAncestor(at.own, at.commit, tip)) return { type: "ship.merged", data: { commit: tip } };
  }
  const { state } = await at.forge.look(request.id, asked);
  if (state === "open") await at.forge.close(request.id);
  return null;
}
