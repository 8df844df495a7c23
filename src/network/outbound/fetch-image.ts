import { createHash } from "node:crypto";
import { createWriteStream } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { join } from "node:path";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { z } from "zod";
import { CaissonError } from "../../contract/error/error.ts";
import type { ImageFetch } from "../../contract/image/image-fetch.ts";
import { jsonOrNull } from "../../lib/failures.ts";
import { notFetched, openDownload } from "./download.ts";
import type { FetchPolicy } from "./fetch-policy.ts";

const DOCUMENT_BYTES_MAX = 8 * 1024 * 1024;
const LAYERS_MAX = 256;
const manifestTypes = [
  "application/vnd.oci.image.index.v1+json",
  "application/vnd.docker.distribution.manifest.list.v2+json",
  "application/vnd.oci.image.manifest.v1+json",
  "application/vnd.docker.distribution.manifest.v2+json",
];

const Descriptor = z.object({
  digest: z.string().regex(/^sha256:[0-9a-f]{64}$/),
  size: z.int().nonnegative(),
  platform: z.object({ architecture: z.string(), os: z.string() }).optional(),
});
type Descriptor = z.infer<typeof Descriptor>;
const Index = z.object({ manifests: z.array(Descriptor).max(1024) });
const Manifest = z.object({ mediaType: z.string().max(256).optional(), config: Descriptor, layers: z.array(Descriptor).max(LAYERS_MAX) });

/**
 * Fetches an image for an owner that is not the machine's user. It does not use skopeo, which has the user's logins and
 * reaches loopback addresses without a proxy. Each address is checked: of the registry, its tokens and its redirects.
 * Throws `denied`, `not_found`, `invalid`, `unsupported`, `too_large`, `unavailable`, `timeout`, `cancelled`.
 */
export async function fetchImageFor(request: ImageFetch, policy: FetchPolicy): Promise<void> {
  const timeout = AbortSignal.timeout(request.timeoutMs);
  const signal = request.signal === undefined ? timeout : AbortSignal.any([timeout, request.signal]);
  try {
    await fetchParts(request, { policy, signal });
  } catch (error) {
    if (request.signal?.aborted) throw new CaissonError("cancelled", "fetching the image was cancelled", { cause: error });
    if (timeout.aborted) throw new CaissonError("timeout", `fetching the image took longer than ${request.timeoutMs} ms`, { cause: error });
    throw error;
  }
}

async function fetchParts(request: ImageFetch, how: { policy: FetchPolicy; signal: AbortSignal }): Promise<void> {
  const { layout, owner, architecture } = request;
  const { base, wanted } = placeOf(request.reference);
  const blobs = join(layout, "blobs", "sha256");
  await mkdir(blobs, { recursive: true, mode: 0o700 });
  let token: string | null = null;
  const ask = async (path: string): Promise<IncomingMessage> => {
    const url = new URL(`${base.href}${path}`);
    const open = () =>
      openDownload({
        ...how,
        url,
        owner,
        headers: { accept: manifestTypes.join(", "), "user-agent": "caisson", ...(token !== null && { authorization: `Bearer ${token}` }) },
      });
    let answer = await open();
    if (answer.statusCode === 401 && token === null) {
      answer.destroy();
      token = await fetchToken(answer.headers["www-authenticate"], { ...how, owner, url });
      answer = await open();
    }
    if (answer.statusCode === 200) return answer;
    answer.destroy();
    throw statusFailure(answer.statusCode ?? 0, request.reference, url);
  };
  const readManifest = async (reference: string): Promise<Buffer> => {
    const data = await readAll(await ask(`manifests/${reference}`));
    if (reference.startsWith("sha256:") && digestOf(data) !== reference) throw damagedImageError(request.reference);
    return data;
  };
  let data = await readManifest(wanted);
  const index = Index.safeParse(jsonOrNull(data.toString("utf8")));
  if (index.success) data = await readManifest(choose(index.data.manifests, { architecture, reference: request.reference }).digest);
  const parsed = Manifest.safeParse(jsonOrNull(data.toString("utf8")));
  if (!parsed.success) throw damagedImageError(request.reference);
  const { config, layers, mediaType = "application/vnd.oci.image.manifest.v1+json" } = parsed.data;
  const parts = new Map([config, ...layers].map((part) => [part.digest, part]));
  const bytes = [...parts.values()].reduce((sum, { size }) => sum + size, 0);
  if (bytes > request.bytesMax)
    throw new CaissonError("too_large", `the image ${request.reference} is larger than ${request.bytesMax} bytes`);
  for (const part of parts.values()) await writePart(await ask(`blobs/${part.digest}`), part, { blobs, reference: request.reference });
  const digest = digestOf(data);
  await writeFile(join(blobs, digest.slice("sha256:".length)), data, { mode: 0o600 });
  const manifests = [{ mediaType, digest, size: data.length }];
  await writeFile(join(layout, "index.json"), JSON.stringify({ schemaVersion: 2, manifests }), { mode: 0o600 });
  await writeFile(join(layout, "oci-layout"), '{"imageLayoutVersion":"1.0.0"}', { mode: 0o600 });
}

/** Parses an image reference as other tools do: without a host, it is in Docker's own registry. */
function placeOf(reference: string): { base: URL; wanted: string } {
  const [name = "", digest] = reference.split("@");
  const slash = name.indexOf("/");
  const first = slash < 0 ? "" : name.slice(0, slash);
  const hasHost = /[.:]/.test(first) || first === "localhost";
  const path = hasHost ? name.slice(slash + 1) : name;
  const colon = path.lastIndexOf(":");
  const repository = colon < 0 ? path : path.slice(0, colon);
  const host = hasHost && first !== "docker.io" ? first : "registry-1.docker.io";
  const full = host === "registry-1.docker.io" && !repository.includes("/") ? `library/${repository}` : repository;
  const address = `https://${host}/v2/${full}/`;
  if (!URL.canParse(address)) throw new CaissonError("invalid", `${reference} does not name a registry`);
  return { base: new URL(address), wanted: digest ?? (colon < 0 ? "latest" : path.slice(colon + 1)) };
}

/** Fetches an anonymous token, which registries require even for public images. */
async function fetchToken(
  challenge: string | undefined,
  { url, owner, policy, signal }: { url: URL; owner: string; policy: FetchPolicy; signal: AbortSignal },
): Promise<string> {
  const fields = new Map(
    [...(challenge ?? "").slice(0, 4096).matchAll(/(?<![a-z])([a-z]{1,32})="([^"]*)"/g)].map(([, name = "", value = ""]) => [name, value]),
  );
  const realm = fields.get("realm") ?? "";
  if (!/^Bearer /i.test(challenge ?? "") || !URL.canParse(realm)) throw statusFailure(401, url.host, url);
  const at = new URL(realm);
  for (const name of ["service", "scope"]) if (fields.has(name)) at.searchParams.set(name, fields.get(name) ?? "");
  const answer = await openDownload({ url: at, owner, policy, signal, headers: { "user-agent": "caisson" } });
  const body = z
    .object({ token: z.string().optional(), access_token: z.string().optional() })
    .safeParse(jsonOrNull((await readAll(answer)).toString("utf8")));
  const token = body.data?.token ?? body.data?.access_token;
  if (token === undefined || !/^[\x21-\x7e]{1,16384}$/.test(token)) throw statusFailure(401, url.host, url);
  return token;
}

function choose(manifests: readonly Descriptor[], { architecture, reference }: { architecture: string; reference: string }): Descriptor {
  const found = manifests.find(({ platform }) => platform?.os === "linux" && platform.architecture === architecture);
  if (found !== undefined) return found;
  throw new CaissonError("unsupported", `the image ${reference} is not available for linux/${architecture}`);
}

async function readAll(answer: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of answer) {
    bytes += (chunk as Buffer).length;
    if (bytes > DOCUMENT_BYTES_MAX) throw new CaissonError("too_large", "the registry's answer is too long");
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks);
}

async function writePart(
  answer: IncomingMessage,
  part: Descriptor,
  { blobs, reference }: { blobs: string; reference: string },
): Promise<void> {
  const hash = createHash("sha256");
  let bytes = 0;
  const counted = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length;
      hash.update(chunk);
      if (bytes > part.size) done(damagedImageError(reference));
      else done(null, chunk);
    },
  });
  await pipeline(answer, counted, createWriteStream(join(blobs, part.digest.slice("sha256:".length)), { flags: "wx", mode: 0o600 })).catch(
    (error: unknown) => {
      throw error instanceof CaissonError || (error as NodeJS.ErrnoException).syscall === "write"
        ? error
        : new CaissonError("unavailable", `the image ${reference} could not be fetched`, { cause: error });
    },
  );
  if (bytes !== part.size || `sha256:${hash.digest("hex")}` !== part.digest) throw damagedImageError(reference);
}

const digestOf = (data: Buffer) => `sha256:${createHash("sha256").update(data).digest("hex")}`;
const damagedImageError = (reference: string) =>
  new CaissonError("invalid", `the image ${reference} does not match its registry's description`);

function statusFailure(status: number, reference: string, url: URL): CaissonError {
  if (status === 401 || status === 403)
    return new CaissonError("denied", `${url.host} does not offer the image ${reference} to anonymous users`, {
      hint: "The machine's user can fetch it, or build an image: `caisson image build`.",
    });
  if (status === 404) return new CaissonError("not_found", `${url.host} has no image ${reference}`, { hint: "Check the name." });
  return notFetched(url);
}
