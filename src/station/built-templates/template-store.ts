import { mkdir, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { CaissonError } from "../../contract/error/error.ts";
import { TemplateName, TemplateView } from "../../contract/template/template.ts";
import { LOCAL_OWNER } from "../../contract/token/owner.ts";
import { type Crashpoint, noCrash } from "../../lib/crashpoint.ts";
import { ABSENT, ifErrno, jsonOrNull } from "../../lib/failures.ts";
import { replaceFile, sweepTemporaries } from "../../lib/replace-file.ts";
import { CANDIDATES_MAX, oneOf } from "../names/one-of.ts";

/** Names and templates without a name, for each owner. */
const NAMES_MAX = 1000;

const StoredTemplate = TemplateView.omit({ names: true });
export type StoredTemplate = Omit<TemplateView, "names">;

/** Templates of every owner, in files of their names: giving a name to another template replaces one file. */
export interface TemplateStore {
  all(): Promise<TemplateView[]>;
  list(options?: { owner?: string | undefined }): Promise<TemplateView[]>;
  /**
   * Finds by id, id prefix or name, among an owner's. The machine's own user finds every owner's, its own first. Throws
   * `invalid` for an ambiguous word, `not_found`.
   */
  find(word: string, options?: { owner?: string | undefined }): Promise<TemplateView>;
  /** Saves a template under a name, or under its id. */
  save(template: StoredTemplate, name: string | null): Promise<void>;
  /** Removes one name, or all of a template that is named by its id. */
  remove(word: string, options?: { owner?: string | undefined }): Promise<void>;
}

export interface TemplateStoreOptions {
  stateDir: string;
  crashpoint?: Crashpoint | undefined;
}

export function createTemplateStore({ stateDir, crashpoint = noCrash }: TemplateStoreOptions): TemplateStore {
  const root = join(stateDir, "builds", "templates");
  const store: TemplateStore = {
    all: () => store.list(),
    async list({ owner } = {}) {
      const owners = owner === undefined ? await ifErrno(readdir(root), ABSENT, []) : [owner];
      const found = new Map<string, TemplateView>();
      for (const each of owners) {
        for (const file of await ifErrno(readdir(join(root, each)), ABSENT, [])) {
          const stored = file.endsWith(".json") ? await read(join(root, each, file)) : null;
          if (stored === null) continue;
          const name = file.slice(0, -".json".length);
          const view = found.get(stored.id) ?? { ...stored, names: [] };
          if (TemplateName.safeParse(name).success) view.names.push(name);
          found.set(stored.id, view);
        }
      }
      for (const { names } of found.values()) names.sort();
      return [...found.values()].sort((a, b) => (a.createdAt < b.createdAt ? -1 : 1));
    },
    async find(word, { owner = LOCAL_OWNER } = {}) {
      const all = await store.list(owner === LOCAL_OWNER ? {} : { owner });
      const isId = word.startsWith("tpl_");
      const matching = all.filter(({ id, names }) => (isId ? id.startsWith(word) : names.includes(word)));
      const own = isId ? [] : matching.filter((each) => each.owner === owner);
      const found = own.length > 0 ? own : matching;
      const id = oneOf(
        word,
        found.slice(0, CANDIDATES_MAX).map((each) => ({ id: each.id, name: each.names[0] ?? null })),
        { what: "template", listedBy: "caisson template ls" },
      );
      return found.find((each) => each.id === id) as TemplateView;
    },
    async save(template, name) {
      const folder = join(root, template.owner);
      if ((await ifErrno(readdir(folder), ABSENT, [])).length >= NAMES_MAX)
        throw new CaissonError("too_large", `${NAMES_MAX} templates have names already`, { hint: "Remove some: caisson template rm NAME" });
      await mkdir(folder, { recursive: true, mode: 0o700 });
      await sweepTemporaries(folder);
      crashpoint("build.template:before");
      await replaceFile(folder, `${name ?? template.id}.json`, JSON.stringify(template));
      crashpoint("build.template:after");
      // A template that has a name needs no file of its id.
      if (name !== null) await rm(join(folder, `${template.id}.json`), { force: true });
    },
    async remove(word, options) {
      const { id, names, owner } = await store.find(word, options);
      const files = word.startsWith("tpl_") ? [id, ...names] : [word];
      for (const file of files) await rm(join(root, owner, `${file}.json`), { force: true });
    },
  };
  return store;
}

async function read(path: string): Promise<StoredTemplate | null> {
  const parsed = StoredTemplate.safeParse(jsonOrNull(await ifErrno(readFile(path, "utf8"), ABSENT, "")));
  return parsed.success ? parsed.data : null;
}
