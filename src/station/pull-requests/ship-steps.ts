import { rm } from "node:fs/promises";
import { CaissonError } from "../../contract/error/error.ts";
import type { ShipStep } from "../../contract/ship/ship.ts";
import type { NewShipEvent } from "../../contract/ship/ship-event.ts";
import type { ShipFacts } from "../../contract/ship/ship-facts.ts";
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
  /** Returns the changes of an idle session. */
  workOf(session: string): Promise<ChangedWork>;
  /** Connects to the ship's remote and forge, given its own repository. */
  reach(order: ShipOrder, own: KeptRepository, signal: AbortSignal): { remote: GitRemote; forge: Forge };
}

/** The ship that a step works on. */
export interface ShipOrder {
  id: string;
  owner: string;
  createdAt: string;
  created: NonNullable<ShipFacts["created"]>;
  facts: Readonly<ShipFacts>;
}

/**
 * Performs a step of a ship unless it has been performed already: each step checks the remote before and after it acts.
 * Resolves with events that describe the result. Throws `unavailable`, `timeout` and `busy` if a retry may help; any
 * other error needs a person.
 */
export async function performStep(step: ShipStep, order: ShipOrder, parts: ShipParts & { signal: AbortSignal }): Promise<NewShipEvent[]> {
  if (step === "commit")
    return [{ type: "ship.committed", data: await commitWork(order, await parts.workOf(order.created.session), parts) }];
  const { committed } = order.facts;
  // It was cancelled before there was anything to undo.
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

/** Removes the ship's folder. By now the remote has its contents, or they are no longer needed. */
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
    const which = into === null ? "does not name a default branch" : `has no branch ${into}`;
    throw new CaissonError("not_found", `the remote ${which}`, {
      hint: `Name the branch to merge into: caisson ship ${order.id} --into BRANCH`,
    });
  }
  const branches = new Map([...refs].flatMap(([ref, at]) => (ref.startsWith(HEADS) ? [[ref.slice(HEADS.length), at] as const] : [])));
  const branch = freeBranch(branchName(order.created.branch), { taken: branches, ours: commit });
  let message = "";
  if (branches.get(branch) !== commit) {
    const pack = await packOf(own, { wants: [commit], haves: await knownOf(own, [...refs.values()]) });
    ({ said: message } = await remote.push([{ ref: `${HEADS}${branch}`, from: null, to: commit }], pack).catch((error: unknown) => {
      throw isMoved(error) ? new CaissonError("busy", "another client pushed a branch of that name first", { cause: error }) : error;
    }));
  }
  return { type: "ship.pushed", data: { branch, commit, into, ...(message !== "" && { said: message }) } };
}

/** Rejects a remote with another object format before we send anything: its repository cannot hold our commits. */
function refuseOtherFormat(commit: string, { refs, capabilities }: Pick<RemoteRefs, "refs" | "capabilities">): void {
  const formatOf = (hash: string) => (hash.length === 64 ? "sha256" : "sha1");
  const [first] = refs.values();
  const theirs = capabilities.has("object-format=sha256") ? "sha256" : first === undefined ? null : formatOf(first);
  if (theirs === null || theirs === formatOf(commit)) return;
  throw new CaissonError("unsupported", `the remote is a ${theirs} repository, but the work started from a ${formatOf(commit)} one`, {
    hint: `Git cannot move commits between the two formats. Ship to a ${formatOf(commit)} repository.`,
  });
}

/** Returns whether a ref moved between reading and pushing; a retry reads it again. */
function isMoved(error: unknown): boolean {
  return error instanceof CaissonError && error.code === "conflict" && error.details?.ref !== undefined;
}

async function request(at: Reached): Promise<NewShipEvent> {
  const pullRequest = requestOf(at);
  const found = await at.forge.find(pullRequest);
  if (found?.state === "closed") throw requestClosedError(found);
  const { id } = found ?? (await at.forge.open(pullRequest));
  const { url, head, state } = await at.forge.look(id, pullRequest);
  if (head !== at.commit && state !== "merged")
    throw new CaissonError("conflict", `the head of the pull request ${url} is not the commit that was pushed`);
  return { type: "ship.requested", data: { request: { id, url } } };
}

function requestOf({ order: { created, facts }, commit }: Reached): NewRequest {
  const { pushed } = facts;
  if (pushed === null) throw new CaissonError("internal", "a pull request needs a pushed branch");
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
    throw isMoved(error) ? new CaissonError("busy", "the target branch moved during the merge", { cause: error }) : error;
  });
  const after = await look(at);
  if (after.merged !== null) return after.merged;
  throw new CaissonError("unavailable", "the forge reported a merge, but the branch does not contain it", {
    hint: "Check the remote by hand: its answers are not reliable.",
  });
}

/**
 * Returns the request as its forge reports it, and whether the target branch has the commit, read from the repository
 * itself.
 */
async function look(at: Reached): Promise<{ view: RequestView; merged: NewShipEvent | null }> {
  const { own, remote, forge, commit, order } = at;
  const pullRequest = requestOf(at);
  const tip = (await remote.refs()).refs.get(`${HEADS}${pullRequest.into}`);
  if (tip === undefined) throw new CaissonError("not_found", `the remote no longer has a branch ${pullRequest.into}`);
  await bringCommit(tip, { own, remote, haves: [commit] });
  const view = await forge.look(order.facts.request?.id ?? "", pullRequest);
  if (await isAncestor(own, commit, tip)) return { view, merged: { type: "ship.merged", data: { commit: tip } } };
  if (view.state !== "merged") return { view, merged: null };
  throw new CaissonError(
    "unavailable",
    `the forge reports the pull request as merged, but ${pullRequest.into} does not contain its commit`,
    {
      hint: `If it was squashed or rebased there, end the ship: caisson ship cancel ${order.id}`,
    },
  );
}

function checkMergeable(view: RequestView, commit: string): void {
  if (view.state === "closed") throw requestClosedError(view);
  if (view.head !== commit)
    throw new CaissonError("conflict", "the branch no longer ends at the commit that was pushed", {
      hint: "Merge the pull request on the forge, or cancel the ship.",
    });
  if (view.mergeable === "no")
    throw new CaissonError("conflict", `the pull request cannot be merged: ${view.why ?? "the forge gives no reason"}`, {
      hint: "Caisson never resolves conflicts: update the branch, then run `caisson ship resume`.",
    });
  if (view.mergeable === "unknown")
    throw new CaissonError("busy", view.why ?? "the forge does not yet know whether the pull request can be merged");
}

function requestClosedError({ url }: RequestView): CaissonError {
  return new CaissonError("conflict", `the pull request ${url} was closed`, {
    hint: "Reopen it and run `caisson ship resume`, or cancel the ship.",
  });
}

async function removeBranch({ order, remote, forge, commit }: Reached): Promise<NewShipEvent> {
  const { pushed, request } = order.facts;
  const branch = pushed?.branch ?? "";
  const ref = `${HEADS}${branch}`;
  const { refs } = await remote.refs();
  const own = request === null ? [] : forge.ownRefs(request.id);
  const removedRefs = [...(refs.get(ref) === commit ? [ref] : []), ...own.filter((each) => refs.has(each))];
  for (const each of removedRefs) await remote.push([{ ref: each, from: refs.get(each) ?? null, to: null }], null);
  // If the branch has newer commits, another client pushed them, so we leave the branch alone.
  const isGone = !refs.has(ref) || removedRefs.includes(ref);
  return { type: "ship.branch_removed", data: { branch, isGone } };
}

/** Closes the request if one may have been opened, or finds that it was merged. The branch stays. */
async function close(at: Reached): Promise<NewShipEvent | null> {
  if (at.order.facts.pushed === null) return null;
  const pullRequest = requestOf(at);
  const request = at.order.facts.request ?? (await at.forge.find(pullRequest));
  if (request === null) return null;
  const tip = (await at.remote.refs()).refs.get(`${HEADS}${pullRequest.into}`);
  if (tip !== undefined) {
    await bringCommit(tip, { own: at.own, remote: at.remote, haves: [at.commit] });
    if (await isAncestor(at.own, at.commit, tip)) return { type: "ship.merged", data: { commit: tip } };
  }
  const { state } = await at.forge.look(request.id, pullRequest);
  if (state === "open") await at.forge.close(request.id);
  return null;
}
