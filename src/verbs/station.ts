import type { declaredVerbs } from "./declared-verbs.ts";
import type { VerbsOf } from "./verb.ts";

type Groups = typeof declaredVerbs;
export type GroupName = keyof Groups;

/**
 * Everything a user can do. The command line, the library and the servers are faces over it: they parse, call and
 * print. Arguments and answers are plain data of the contract, so a station can be at the other end of a connection.
 * Only streams and sandbox handles are live.
 */
export interface Station extends StationVerbs, AsyncDisposable {}
type StationVerbs = { readonly [Group in GroupName]: VerbsOf<Groups[Group]> };
