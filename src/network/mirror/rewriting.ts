import { CaissonError } from "../../contract/error/error.ts";
import { ignore } from "../../lib/failures.ts";
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
 * Rewrites pages one at a time, because each is in memory as a whole and some are large. Throws `protocol` for a page
 * that does not have the registry's form.
 */
export function createRewriting(): (work: Work) => Promise<RewrittenDraft> {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const mine = last.then(() => rewriteDraft(work));
    last = ignore(mine, "its caller awaits it; the next turn does not depend on its result");
    return mine;
  };
}

async function rewriteDraft({ resource, draft, contentType, cache }: Work): Promise<RewrittenDraft> {
  const page = await rewriteBody(resource, await draft.read(0, draft.bytes), contentType);
  const target = await cache.begin();
  try {
    await target.write(page.body);
  } catch (error) {
    await target.close();
    throw error;
  }
  return {
    draft: target,
    contentType: page.contentType ?? contentType,
    sha256: sha256Of(page.body),
    list: encodeDigests(page.digests ?? []),
  };
}

async function rewriteBody(resource: Resource, body: Buffer, contentType: string) {
  try {
    return resource.rewrite?.({ body, contentType }) ?? { body };
  } catch (cause) {
    throw new CaissonError("protocol", `the answer of ${resource.url.host} for ${resource.url.pathname} is not a page of such a registry`, {
      cause,
    });
  }
}
