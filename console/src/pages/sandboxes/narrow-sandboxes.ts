import type { SandboxInfo } from "../../../../src/contract/sandbox/sandbox.ts";
import type { Sort } from "../../parts/list.tsx";
import { type TimeBack, timesBack } from "../../parts/times-back.ts";

export interface SandboxFilter {
  text: string;
  state: string | null;
  runtime: string | null;
  /** `KEY=VALUE`. */
  label: string | null;
  owner: string | null;
  /** The maximum age of the sandbox. */
  time: TimeBack | null;
}

export const usualSort: Sort = { by: "created", isDown: true };

/** Returns the sandboxes that pass the filter, sorted. */
export function narrowSandboxes(
  sandboxes: readonly SandboxInfo[],
  { filter, sort, nowMs }: { filter: SandboxFilter; sort: Sort; nowMs: number },
): SandboxInfo[] {
  const since = filter.time === null ? "" : new Date(nowMs - timesBack[filter.time]).toISOString();
  const words = filter.text.toLowerCase().split(/\s+/).filter(Boolean);
  const passing = sandboxes.filter(
    (each) =>
      (filter.state === null || each.state === filter.state) &&
      (filter.runtime === null || each.runtime === filter.runtime) &&
      (filter.owner === null || each.owner === filter.owner) &&
      (filter.label === null || labelsOf(each).includes(filter.label)) &&
      each.createdAt >= since &&
      (words.length === 0 || isNamed(each, words)),
  );
  const keyOf = sortable[sort.by] ?? sortable.created;
  const turn = sort.isDown ? -1 : 1;
  return passing
    .map((each) => ({ each, value: keyOf?.(each) ?? "" }))
    .sort((left, right) => turn * compare(left.value, right.value) || compare(left.each.id, right.each.id))
    .map(({ each }) => each);
}

const sortable: Readonly<Record<string, (sandbox: SandboxInfo) => string>> = {
  created: ({ createdAt }) => createdAt,
  name: (sandbox) => (sandbox.name ?? sandbox.id).toLowerCase(),
  state: ({ state }) => state,
  runtime: ({ runtime }) => runtime,
  owner: ({ owner }) => owner,
};

const compare = (left: string, right: string) => (left < right ? -1 : left > right ? 1 : 0);

function isNamed(sandbox: SandboxInfo, words: readonly string[]): boolean {
  const { id, name = "", runtime, owner, template, workspace } = sandbox;
  const about = [id, name, runtime, owner, templateWord(template), workspace.kind === "folder" ? workspace.path : "", ...labelsOf(sandbox)];
  const text = about.join("\n").toLowerCase();
  return words.every((word) => text.includes(word));
}

export function labelsOf({ labels }: Pick<SandboxInfo, "labels">): string[] {
  return Object.entries(labels).map(([key, value]) => `${key}=${value}`);
}

/** Describes the template of a sandbox in a word. */
export function templateWord(template: SandboxInfo["template"]): string {
  if (template.kind === "image") return template.reference;
  return template.kind === "snapshot" ? template.id : "host";
}

/** Summarizes the network policy in a few words. */
export function networkWord(policy: SandboxInfo["network"]): string {
  if (policy.mode === "none") return "none";
  if (policy.mode === "open") return "open";
  const hosts = policy.rules.map(({ host }) => host);
  const named = [...hosts, ...policy.registries];
  if (named.length === 0) return "no hosts yet";
  return named.length > 2 ? `${named.slice(0, 2).join(", ")} +${named.length - 2}` : named.join(", ");
}

/** Returns the distinct values, sorted, as choices of a filter. */
export function choicesOf(values: readonly string[]): { value: string; label: string }[] {
  return [...new Set(values)].sort().map((value) => ({ value, label: value }));
}
