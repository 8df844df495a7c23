import { join } from "node:path";
import type { PrunedThing } from "../contract/machine/machine-verbs.ts";
import { once } from "../lib/once.ts";
import type { Runtime } from "../sandbox/runtime.ts";
import { removeIfStale, staleSubjects } from "../station/inside/remove-stale-artifacts.ts";
import { createLogStore } from "../station/machine/log-store.ts";
import { createPackageStore } from "../station/machine/package-store.ts";
import { createPointStore } from "../station/machine/point-store.ts";
import type { FileStores, PrunedStore } from "../station/machine/prune.ts";
import { createShipStore } from "../station/machine/ship-store.ts";
import { sizeOf } from "../station/machine/size-of.ts";
import type { StationCore } from "../station/station-core.ts";
import type { StepStore } from "../station/templates/steps/step-store.ts";
import type { UploadVerbs } from "../verbs/uploads.ts";
import { removeMirror, unusedMirrors } from "../workspace/git/unused-mirrors.ts";

interface UnusedFilesOptions {
  core: StationCore;
  uploads: Pick<UploadVerbs, "list" | "remove">;
  /** The runtime that stores templates. */
  templates: Runtime | null;
  /** The steps of template builds. */
  steps: StepStore;
}

/** Returns the stores of files that can be downloaded or created again, and of files left behind by removed things. */
export function unusedFiles({ core, uploads, templates, steps }: UnusedFilesOptions): FileStores {
  const sizeBelow = async (...path: string[]) => (await sizeOf(join(core.stateDir, ...path))).bytes;
  return {
    ...templateStores(templates, sizeBelow),
    builds: buildStore(steps),
    points: createPointStore(core),
    packages: createPackageStore(core),
    ships: createShipStore(core),
    logs: createLogStore(core),
    mirrors: {
      async find(isOld) {
        const old = (await unusedMirrors(core)).filter(({ lastFetchedMs }) => isOld(new Date(lastFetchedMs).toISOString()));
        return await Promise.all(
          old.map(async ({ name, url }) => ({
            ...{ kind: "mirror" as const, id: `mirrors/${name}`, name: url },
            ...{ bytes: await sizeBelow("mirrors", name), why: "no session uses this repository" },
          })),
        );
      },
      remove: (id) => removeMirror(nameOf(id), core),
    },
    uploads: {
      async find() {
        const expired = (await uploads.list()).filter(({ expiresAt }) => expiresAt !== null && Date.parse(expiresAt) <= Date.now());
        return expired.map(({ id, bytes }) => ({ kind: "upload" as const, id, name: null, bytes, why: "it expired without being used" }));
      },
      remove: (id) => uploads.remove(id).then(() => true),
    },
    artifacts: {
      async find() {
        return await Promise.all(
          (await staleSubjects(core)).map(async (subject) => ({
            ...{ kind: "artifacts" as const, id: `artifacts/${subject}`, name: null },
            ...{ bytes: await sizeBelow("artifacts", subject), why: `${subject} was removed` },
          })),
        );
      },
      remove: (id) => removeIfStale(nameOf(id), core),
    },
  };
}

/** The build cache. The newest steps come first, because they are built on earlier ones. */
function buildStore(steps: StepStore): PrunedStore {
  return {
    async find(isOld) {
      await steps.sweep();
      const unused = (await steps.unused()).filter(({ lastUsedMs }) => isOld(new Date(lastUsedMs).toISOString()));
      return unused.toReversed().map(({ key, text, bytes }) => ({
        ...{ kind: "build" as const, id: `builds/${key}`, name: text.slice(0, 100), bytes },
        why: "no template uses this step; a build can run it again",
      }));
    },
    remove: (id) => steps.remove(nameOf(id)),
  };
}

/** Copies of this machine's system are named after what they are for; see `template-cache.ts`. */
const SKELETON = /^(?:host|rootless)-/;
const whyUnused = {
  image: "no sandbox or snapshot uses it; it can be fetched again",
  template: "no sandbox or snapshot uses it",
  skeleton: "no sandbox or snapshot uses this copy of the machine's system",
} as const satisfies Partial<Record<PrunedThing["kind"], string>>;

function templateStores(
  runtime: Runtime | null,
  sizeBelow: (...path: string[]) => Promise<number>,
): Pick<FileStores, "images" | "templates" | "skeletons"> {
  const images = runtime?.images;
  const unused = once(async () => (await images?.unused()) ?? []);
  const kindOf = ({ kind, name }: { kind: "image" | "template"; name: string }) => (SKELETON.test(name) ? "skeleton" : kind);
  const ofKind = (kind: keyof typeof whyUnused): PrunedStore => ({
    async find(isOld) {
      const old = (await unused()).filter((each) => kindOf(each) === kind && isOld(new Date(each.lastUsedMs).toISOString()));
      return await Promise.all(
        old.map(async ({ name }) => {
          const bytes = await sizeBelow("templates", name);
          return { kind, id: `templates/${name}`, name: null, bytes, why: whyUnused[kind] };
        }),
      );
    },
    remove: async (id) => (await images?.removeUnused(nameOf(id))) ?? false,
  });
  return { images: ofKind("image"), templates: ofKind("template"), skeletons: ofKind("skeleton") };
}

/** A file without an id is identified by its path in the state folder. */
const nameOf = (id: string) => id.slice(id.lastIndexOf("/") + 1);
