import type { Duplex } from "node:stream";
import { CaissonError } from "../../contract/error.ts";
import type { NetworkVia } from "../../contract/network-event.ts";
import { pathOf } from "../address/request-path.ts";
import type { RequestHead, ResponseHead } from "../http/head.ts";
import { type Header, header, methodOverrides, pathOverrides } from "../http/headers.ts";
import { type ForwardVerdict, RelayRefusal, type Verdict } from "../http/relay-options.ts";
import { mustInspect } from "./decide-egress.ts";
import { type Asked, askedOf, denialAnswer, isDenial } from "./denial.ts";
import type { EgressContext } from "./egress-context.ts";
import type { EgressSecrets } from "./egress-options.ts";
import type { Passage } from "./passages.ts";
import { connectPassage } from "./passages.ts";

export interface ForwardOptions {
  passage: Passage;
  /** In origin form, with the Host it is for. Was decided on. */
  request: RequestHead;
  tls: boolean;
  via: NetworkVia;
  key: string;
  /** Whether the bytes of the upstream's socket are what the passage counts. */
  measured: boolean;
  /** A connection that is there already; used once. */
  upstream?: () => Duplex | null;
}

const PATH_MAX = 2048;
const WHY_MAX = 300;

/**
 * A request that may be made, as the relay makes it: secrets are injected on the way there and redacted on the way
 * back.
 */
export function forwardRequest(context: EgressContext, options: ForwardOptions): Verdict | Promise<Verdict> {
  const { passage, tls, via, measured } = options;
  // Where rules decide by method and path, nothing may make the server see others.
  const request = mustInspect(passage.grant) ? withoutOverrides(options.request) : options.request;
  passage.request(request.method, request.target);
  const asked = askedOf(passage.grant, via, request);
  const verdict: ForwardVerdict = {
    kind: "forward",
    key: options.key,
    async connect() {
      const ready = options.upstream?.();
      if (ready) return ready;
      const connected = await connectPassage(context, { passage, asked, tls, measured });
      if (isDenial(connected)) throw new RelayRefusal(denialAnswer(connected));
      return connected;
    },
    request,
  };
  return hasSecrets(context) ? withSecrets(context, { verdict, passage, asked, tls }) : verdict;
}

function withoutOverrides(request: RequestHead): RequestHead {
  const headers = request.headers.filter(({ lower }) => !methodOverrides.has(lower) && !pathOverrides.has(lower));
  return headers.length === request.headers.length ? request : { ...request, headers };
}

export function hasSecrets({ secrets }: EgressContext): boolean {
  for (const _name in secrets.placeholders) return true;
  return false;
}

async function withSecrets(
  context: EgressContext,
  options: { verdict: ForwardVerdict; passage: Passage; asked: Asked; tls: boolean },
): Promise<Verdict> {
  const { verdict, passage, asked, tls } = options;
  const put = await injectSecrets(context, { request: verdict.request, asked, tls });
  if ("why" in put) return denialAnswer(context.deny(asked, { reason: "secret_unavailable", why: put.why }));
  for (const name of put.used) passage.usedSecret(name);
  const out = tls ? redactorFor(context, asked) : null;
  if (out === null) return { ...verdict, request: put.request };
  const response = (head: ResponseHead) => {
    const changed = out.head(head);
    // What comes before the answer has no body; after 101 come raw bytes.
    return head.status < 200 && head.status !== 101 ? { head: changed } : { head: changed, body: out.body() };
  };
  return { ...verdict, request: identityEncoding(put.request), response };
}

/** The request with secrets in it, or why it must not be sent. Tells what was used and what was not. */
export async function injectSecrets(
  context: EgressContext,
  options: { request: RequestHead; asked: Asked; tls: boolean },
): Promise<{ request: RequestHead; used: readonly string[] } | { why: string }> {
  const { request, asked, tls } = options;
  const { host, port } = asked;
  try {
    const { head, used, withheld } = await context.secrets.inject(request, { host, port, tls });
    tellUses(context, { request, host, used, withheld });
    for (const secret of used) context.sentSecrets.add(secret);
    return { request: head, used };
  } catch (error) {
    // Only our own errors are known to hold no value.
    return { why: error instanceof CaissonError ? error.message : "a secret that this request needs is not available" };
  }
}

/** The same use again within a few seconds is not told again. */
function tellUses(
  { emit, toldInWindow }: EgressContext,
  options: { request: RequestHead; host: string; used: readonly string[]; withheld: readonly { secret: string; why: string }[] },
): void {
  const { request, host, used, withheld } = options;
  for (const { secret, why } of withheld) {
    if (!toldInWindow(`withheld ${secret} ${host} ${why}`))
      emit({ type: "secret.withheld", data: { secret, host, why: why.slice(0, WHY_MAX) } });
  }
  const { method } = request;
  const path = pathOf(request.target).slice(0, PATH_MAX);
  for (const secret of used) {
    if (!toldInWindow(`used ${secret} ${host} ${method} ${path}`)) emit({ type: "secret.used", data: { secret, host, method, path } });
  }
}

/** For answers of this host; null when it may hold no secret. */
export function redactorFor({ secrets, sentSecrets }: EgressContext, { host, port }: Asked): ReturnType<EgressSecrets["answerRedactor"]> {
  return sentSecrets.size > 0 && secrets.concerns(host, port) ? secrets.answerRedactor([...sentSecrets]) : null;
}

/** A compressed answer could not be looked through. */
export function identityEncoding(request: RequestHead): RequestHead {
  return {
    ...request,
    headers: [...request.headers.filter(({ lower }) => lower !== "accept-encoding"), header("Accept-Encoding", "identity")],
  };
}

/**
 * The request as its origin gets it: a path as the target, exactly one Host, and nothing that was meant for the proxy.
 */
export function toOrigin(head: RequestHead, { path, authority }: { path: string; authority: string }): RequestHead {
  const headers: Header[] = [header("Host", authority)];
  for (const each of head.headers) {
    if (each.lower !== "host" && each.lower !== "proxy-authorization" && each.lower !== "proxy-connection") headers.push(each);
  }
  return { method: head.method, target: path, version: head.version, headers };
}
