import { CaissonError } from "../../contract/error.ts";
import type { Cache, Draft } from "./cache.ts";
import { encodeDigests } from "./digest-list.ts";
import { type RewrittenDraft, sha256Of } from "./download.ts";
import type { Resource } from "./resource.ts";

interface Work {
  resource: Resource;
  draft: Draft;
  contentType: string;
  cache: Cache;
}

/**
 * Rewrites pages one at a time: each is in memory as a whole, and some are large. Throws `protocol` for a page that is
 * not of the registry's form.
 */
export function createRewriting(): (work: Work) => Promise<RewrittenDraft> {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const mine = last.then(() => rewritten(work));
    last = mine.catch(() => undefined);
    return mine;
  };
}

async function rewritten({ resource, draft, contentType, cache }: Work): Promise<RewrittenDraft> {
  const made = await remade(resource, await draft.read(0, draft.bytes), contentType);
  const target = await cache.begin();
  try {
    await target.write(made.body);
  } catch (error) {
    await target.close();
    throw error;
  }
  return {
    draft: target,
    contentType: made.contentType ?? contentType,
    sha256: sha256Of(made.body),
    list: encodeDigests(made.digests ?? []),
  };
}

async function remade(resource: Resource, body: Buffer, contentType: string) {
  try {
    return resource.rewrite?.({ body, contentType }) ?? { body };
  } catch (cause) {
    throw new CaissonError(
      "protocol",
      `${resource.url.host} answered ${resource.url.pathname} with what is not a page of such a registry`,
      { cause },
    );
  }
}
