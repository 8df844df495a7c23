import { type ForgeRepository, mergedTreeOf } from "./forge-repository.ts";

interface Pull {
  number: number;
  title: string;
  body: string;
  branch: string;
  into: string;
  state: "open" | "closed";
  mergedAt: string | null;
  mergeCommit: string | null;
  /** The branch's last commit, also after the branch is removed. */
  head: string;
  /** The number of times it was read. GitHub detects conflicts with a delay. */
  looks: number;
}

/** The pull requests of the forge's repository. */
export interface ForgePulls {
  all(): readonly Pull[];
  /** Sets a rule of the forge that forbids merging, which an administrator's token would bypass. Null removes it. */
  forbid(rule: "draft" | "protected" | null): void;
  /** Answers an API call below the repository's path. */
  answer(method: string, path: string, body: Record<string, unknown>): { status: number; json: unknown };
}

export function createForgePulls(options: { kind: "github" | "gitea"; repository: ForgeRepository; url: () => string }): ForgePulls {
  const { kind, repository } = options;
  const pulls: Pull[] = [];
  let rule: "draft" | "protected" | null = null;
  const headOf = (pull: Pull) => {
    if (pull.state === "open") pull.head = repository.branch(pull.branch) ?? pull.head;
    return pull.head;
  };
  const isMergeable = (pull: Pull) => mergedTreeOf(repository, repository.branch(pull.into) ?? "", headOf(pull)) !== null;
  const show = (pull: Pull, { isList = false } = {}) => {
    const isKnown = kind === "gitea" || pull.looks > 1;
    const isClean = pull.state === "open" && isMergeable(pull);
    // GitHub distinguishes a rule that forbids merging from a conflict.
    const mergeable = isClean && (rule === null || (rule === "draft" && kind === "gitea") || (rule === "protected" && kind === "github"));
    const state = rule === "draft" ? "draft" : rule === "protected" ? "blocked" : mergeable ? "clean" : "dirty";
    const common = {
      id: 1000 + pull.number,
      number: pull.number,
      html_url: `${options.url()}/team/project/${kind === "github" ? "pull" : "pulls"}/${pull.number}`,
      title: pull.title,
      body: pull.body,
      state: pull.state,
      draft: rule === "draft",
      merged_at: pull.mergedAt,
      merge_commit_sha: pull.mergeCommit,
      head: { label: pull.branch, ref: pull.branch, sha: headOf(pull) },
      base: { label: pull.into, ref: pull.into, sha: repository.branch(pull.into) },
    };
    // GitHub's lists do not contain the merge fields.
    if (isList && kind === "github") return common;
    const condition = kind === "github" ? { mergeable_state: !isKnown ? "unknown" : state } : {};
    return { ...common, merged: pull.mergedAt !== null, mergeable: isKnown ? mergeable : null, ...condition };
  };
  const create = ({ title, body, head, base }: Record<string, unknown>) => {
    const [branch, into] = [String(head), String(base)];
    if (repository.branch(branch) === null || repository.branch(into) === null)
      return { status: 422, json: { message: "Validation Failed" } };
    if (pulls.some((each) => each.state === "open" && each.branch === branch && each.into === into))
      return { status: kind === "github" ? 422 : 409, json: { message: "a pull request already exists" } };
    const number = pulls.length + 1;
    const fresh = { mergedAt: null, mergeCommit: null, head: repository.branch(branch) ?? "", looks: 0 };
    const pull: Pull = { number, title: String(title), body: String(body ?? ""), branch, into, state: "open", ...fresh };
    pulls.push(pull);
    return { status: 201, json: show(pull) };
  };
  const merge = (pull: Pull, sha: unknown) => {
    if (pull.state !== "open" || !isMergeable(pull)) return { status: 405, json: { message: "Pull Request is not mergeable" } };
    if (sha !== undefined && sha !== headOf(pull)) return { status: 409, json: { message: "Head branch was modified" } };
    const tip = repository.branch(pull.into) ?? "";
    const tree = mergedTreeOf(repository, tip, headOf(pull)) ?? "";
    const mergeCommit = repository.git("commit-tree", tree, "-p", tip, "-p", headOf(pull), "-m", `Merge pull request #${pull.number}`);
    repository.git("update-ref", `refs/heads/${pull.into}`, mergeCommit, tip);
    Object.assign(pull, { state: "closed", mergedAt: "2026-01-02T03:04:05Z", mergeCommit: mergeCommit });
    return kind === "github"
      ? { status: 200, json: { sha: mergeCommit, merged: true, message: "merged" } }
      : { status: 200, json: undefined };
  };
  return {
    all: () => pulls,
    forbid(next) {
      rule = next;
    },
    answer(method, path, body) {
      const url = new URL(path, "http://x");
      if (url.pathname === "/pulls") {
        if (method === "POST") return create(body);
        const head = url.searchParams.get("head")?.split(":")[1];
        const listed = pulls.filter((pull) => head === undefined || pull.branch === head);
        const page = Number(url.searchParams.get("page") ?? 1);
        return { status: 200, json: page > 1 ? [] : listed.map((pull) => show(pull, { isList: true })).reverse() };
      }
      const [, number, more] = /^\/pulls\/(\d+)(\/merge)?$/.exec(url.pathname) ?? [];
      const pull = pulls.find((each) => each.number === Number(number));
      if (pull === undefined) return { status: 404, json: { message: "Not Found" } };
      if (more !== undefined) return merge(pull, kind === "github" ? body.sha : body.head_commit_id);
      if (method === "PATCH" && body.state === "closed") pull.state = "closed";
      else pull.looks += 1;
      return { status: 200, json: show(pull) };
    },
  };
}
