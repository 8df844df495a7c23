import { CaissonError } from "../../../contract/error/error.ts";
import { isRefName } from "../ref-name.ts";
import { lineText, readPktLines } from "./pkt-line.ts";

/** More refs than any repository in real use has. */
const REFS_MAX = 200_000;
const HASH = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/;

/** The refs that a remote advertises. */
export interface RemoteRefs {
  /** Commits by full ref name, without names that git would reject. */
  refs: ReadonlyMap<string, string>;
  /** The ref that HEAD points to, or null if the remote does not report it. */
  head: string | null;
  capabilities: ReadonlySet<string>;
}

export type Service = "git-upload-pack" | "git-receive-pack";

/** Parses the answer to `GET info/refs?service=…`. Throws `protocol` for any other answer. */
export function readAdvertisedRefs(body: Buffer, service: Service): RemoteRefs {
  const { lines } = readPktLines(body, { linesMax: REFS_MAX });
  const [first, flush, ...rest] = lines;
  if (first == null || lineText(first) !== `# service=${service}` || flush !== null)
    throw new CaissonError("protocol", `the remote does not answer like ${service}`);
  const refs = new Map<string, string>();
  let capabilities: ReadonlySet<string> = new Set();
  for (const [index, line] of rest.entries()) {
    if (line === null) break;
    const nul = line.indexOf(0);
    if (index === 0 && nul !== -1)
      capabilities = new Set(
        lineText(line.subarray(nul + 1))
          .split(" ")
          .filter(Boolean),
      );
    const text = lineText(nul === -1 ? line : line.subarray(0, nul));
    const space = text.indexOf(" ");
    const [hash, name] = [text.slice(0, space), text.slice(space + 1)];
    if (!HASH.test(hash)) throw new CaissonError("protocol", "the remote sent a ref without a commit");
    // Tags are listed a second time with their target; an empty repository lists a placeholder.
    if (name !== "HEAD" && isRefName(name)) refs.set(name, hash);
  }
  const head = [...capabilities].find((each) => each.startsWith("symref=HEAD:"))?.slice("symref=HEAD:".length) ?? null;
  return { refs, head: head !== null && isRefName(head) ? head : null, capabilities };
}
