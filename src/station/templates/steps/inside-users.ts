import { CaissonError } from "../../../contract/error/error.ts";
import type { OwnedSandbox } from "../../../sandbox/sandbox.ts";
import { excerpt, problemAt } from "../dockerfile/dockerfile-problem.ts";

const TABLE_BYTES_MAX = 1024 * 1024;
const ID_MAX = 2 ** 32 - 2;

export interface InsideUser {
  uid: number;
  gid: number;
  home: string;
}

/** Resolves `USER[:GROUP]` by the tables inside. A number needs no entry. Throws `invalid` for an unknown name. */
export async function insideUser(sandbox: OwnedSandbox, text: string | null, line: number): Promise<InsideUser> {
  const [name = "", group] = (text ?? "0").split(":");
  const users = await readTable(sandbox, "/etc/passwd");
  const row = users.find((fields) => fields[0] === name) ?? users.find((fields) => fields[2] === name);
  const uid = idOf(row?.[2] ?? name);
  if (uid === null) throw problemAt(line, `there is no user ${JSON.stringify(excerpt(name))} inside`);
  const home = row?.[5]?.startsWith("/") ? row[5] : uid === 0 ? "/root" : "/";
  if (group === undefined) return { uid, gid: idOf(row?.[3] ?? "") ?? (row === undefined ? uid : 0), home };
  const groups = await readTable(sandbox, "/etc/group");
  const gid = idOf(groups.find((fields) => fields[0] === group)?.[2] ?? group);
  if (gid === null) throw problemAt(line, `there is no group ${JSON.stringify(excerpt(group))} inside`);
  return { uid, gid, home };
}

function idOf(text: string): number | null {
  const id = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
  return id <= ID_MAX ? id : null;
}

async function readTable(sandbox: OwnedSandbox, path: string): Promise<string[][]> {
  try {
    const pieces: Uint8Array[] = [];
    for await (const piece of await sandbox.readFile(path, { user: "root", length: TABLE_BYTES_MAX })) pieces.push(piece);
    return Buffer.concat(pieces)
      .toString("utf8")
      .split("\n")
      .map((row) => row.split(":"));
  } catch (error) {
    if (error instanceof CaissonError && ["not_found", "invalid", "unsupported", "denied"].includes(error.code)) return [];
    throw error;
  }
}
