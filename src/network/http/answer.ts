import { CaissonError } from "../../contract/error/error.ts";
import { type BodyFraming, BodyScanner, chunkedBody, noBody, responseFraming, untilClose } from "./body.ts";
import type { ClientStream } from "./client-stream.ts";
import { parseResponseHead, type ResponseHead, responseHeadText } from "./head.ts";
import { HeadReader } from "./head-reader.ts";
import { HttpSyntaxError } from "./headers.ts";
import type { IncomingRequest } from "./hop-by-hop.ts";
import { type ConnectionWishes, connectionWishes, headersDownstream, isPersistent } from "./hop-by-hop.ts";
import type { BodyTransform, ForwardVerdict } from "./relay-options.ts";
import { type TransformedBody, transformBody } from "./transformed-body.ts";
import { NOTHING } from "./write-message.ts";

/** The parts of its exchange that an answer needs. */
export interface AnswerHost {
  readonly client: ClientStream;
  readonly request: IncomingRequest;
  readonly verdict: ForwardVerdict;
  /** The protocol that the client may switch to. */
  readonly upgrade: string | null;
  /** Whether the client's connection must end after this answer, whatever the answer says. */
  closesClient(): boolean;
  pauseUpstream(): void;
  resumeUpstream(): void;
  /** Called when the answer was completely written to the client. */
  onAnswered(): void;
  /** Called when the head of a 101 was written. `received` are the bytes after it. */
  onSwitched(received: Buffer, transform: BodyTransform | undefined): void;
  onAnswerError(error: Error): void;
}

const INFORMATIONAL_MAX = 32;

/** One answer on its way from the upstream to the client, passed on as it arrives. */
export class Answer {
  /** The status that the client gets, or 0 before the head was written. */
  status = 0;
  /** Whether the client's connection ends after it. */
  closesClient = false;
  /** Whether the upstream's connection can be reused after it. */
  keepsUpstream = false;
  serverKeepsMs: number | null = null;
  readonly #host: AnswerHost;
  readonly #reader = new HeadReader();
  readonly #body = new BodyScanner();
  readonly #onPayload = (payload: Buffer) => this.#pushPayload(payload);
  #transformed: TransformedBody | null = null;
  #informational = 0;

  constructor(host: AnswerHost) {
    this.#host = host;
  }

  /** Whether the upstream has sent the whole answer. */
  get received(): boolean {
    return this.status !== 0 && this.#body.done;
  }

  /** Takes bytes from upstream. Throws if they are not an answer, or if the verdict's `response` throws. */
  push(chunk: Buffer): void {
    if (this.status === 0) this.#onHeadBytes(chunk);
    else this.#onBodyBytes(chunk);
  }

  /** Called when the upstream has ended its side. Returns false if the answer is incomplete. */
  end(): boolean {
    if (this.status === 0) return false;
    if (this.#body.done) return true;
    if (!this.#body.end()) return false;
    this.#onWholeBody();
    return true;
  }

  clientDrained(): void {
    if (this.#transformed === null) this.#host.resumeUpstream();
    else this.#transformed.sinkDrained();
  }

  destroy(): void {
    this.#transformed?.destroy();
  }

  #onHeadBytes(chunk: Buffer): void {
    let bytes = chunk;
    while (bytes.length > 0) {
      const found = this.#reader.push(bytes);
      if (found === null) return;
      const head = parseResponseHead(found);
      bytes = this.#reader.rest;
      if (head.status >= 200 || head.status === 101) {
        this.#onHead(head, bytes);
        return;
      }
      this.#passInformational(head);
    }
  }

  #passInformational(head: ResponseHead): void {
    this.#informational += 1;
    if (this.#informational > INFORMATIONAL_MAX) throw new HttpSyntaxError("the upstream sent too many interim responses");
    if (this.#host.request.head.version === "1.0") return;
    const shaped = this.#host.verdict.response?.(head).head ?? head;
    const { named } = connectionWishes(head);
    const headers = headersDownstream({ ...shaped, status: head.status }, { framing: noBody, named, upgrade: null, connection: null });
    this.#writeHead({ version: "1.1", status: head.status, reason: shaped.reason, headers }, NOTHING);
  }

  #onHead(head: ResponseHead, rest: Buffer): void {
    const wishes = connectionWishes(head);
    const { request, verdict } = this.#host;
    const { method } = verdict.request;
    if (head.status === 101 || (method === "CONNECT" && head.status < 300)) {
      this.#switchProtocols(head, wishes, rest);
      return;
    }
    const shaped = verdict.response?.(head) ?? { head };
    const framing = responseFraming(head, method);
    if (shaped.head.status !== head.status && responseFraming(shaped.head, method).kind !== framing.kind) {
      throw new CaissonError("internal", "the verdict changed the status to one with a different body framing");
    }
    const old = request.head.version === "1.0";
    const framingOut = framingFor(framing, request.head.version);
    this.closesClient = framingOut.kind === "close" || !isPersistent(request.head, request.wishes) || this.#host.closesClient();
    this.keepsUpstream = framing.kind !== "close" && verdict.request.version === "1.1" && isPersistent(head, wishes);
    this.serverKeepsMs = wishes.keepMs;
    const connection = this.closesClient ? "close" : old ? "keep-alive" : null;
    const headers = headersDownstream(shaped.head, { framing: framingOut, named: wishes.named, upgrade: null, connection });
    const out: ResponseHead = { version: "1.1", status: shaped.head.status, reason: shaped.head.reason, headers };
    this.#body.start(framing);
    const transform = shaped.body ?? (framingOut === framing ? undefined : (chunk: Buffer) => chunk);
    if (transform === undefined || this.#body.done) this.#startPlain(out, rest);
    else this.#startTransformed(out, rest, { transform, framing: framingOut });
  }

  #startPlain(head: ResponseHead, rest: Buffer): void {
    const end = this.#body.scan(rest, 0);
    const more = this.#writeHead(head, end === rest.length ? rest : rest.subarray(0, end));
    this.#afterBodyBytes({ more, bytesFollow: end < rest.length });
  }

  #startTransformed(head: ResponseHead, rest: Buffer, options: { transform: BodyTransform; framing: BodyFraming }): void {
    this.#writeHead(head, NOTHING);
    const host = this.#host;
    this.#transformed = transformBody({
      ...options,
      write: (bytes) => host.client.write(bytes),
      onDrain: () => host.resumeUpstream(),
      onWhole: () => host.onAnswered(),
      onError: (error) => host.onAnswerError(error),
    });
    if (rest.length > 0) this.#onBodyBytes(rest);
  }

  #onBodyBytes(chunk: Buffer): void {
    if (this.#transformed !== null) {
      const end = this.#body.scan(chunk, 0, this.#onPayload);
      this.#afterBodyBytes({ more: true, bytesFollow: end < chunk.length });
      return;
    }
    const end = this.#body.scan(chunk, 0);
    const more = end === 0 || this.#host.client.write(end === chunk.length ? chunk : chunk.subarray(0, end));
    this.#afterBodyBytes({ more, bytesFollow: end < chunk.length });
  }

  #pushPayload(payload: Buffer): void {
    if (this.#transformed?.push(payload) === false) this.#host.pauseUpstream();
  }

  #afterBodyBytes({ more, bytesFollow }: { more: boolean; bytesFollow: boolean }): void {
    // Bytes after an answer cannot answer a request that was not sent yet.
    if (bytesFollow) this.keepsUpstream = false;
    if (this.#body.done) this.#onWholeBody();
    else if (!more) this.#host.pauseUpstream();
  }

  #onWholeBody(): void {
    if (this.#transformed === null) this.#host.onAnswered();
    else this.#transformed.end();
  }

  #switchProtocols(head: ResponseHead, wishes: ConnectionWishes, rest: Buffer): void {
    const { upgrade, verdict } = this.#host;
    if (head.status === 101 && (upgrade === null || wishes.upgrade !== upgrade)) {
      throw new HttpSyntaxError("the upstream switched to a protocol that was not requested");
    }
    const shaped = verdict.response?.(head) ?? { head };
    const next = { framing: noBody, named: wishes.named, upgrade: head.status === 101 ? upgrade : null, connection: null };
    const headers = headersDownstream(shaped.head, next).filter(({ lower }) => lower !== "content-length" && lower !== "transfer-encoding");
    this.#writeHead({ version: "1.1", status: head.status, reason: shaped.head.reason, headers }, NOTHING);
    this.#host.onSwitched(rest, shaped.body);
  }

  #writeHead(head: ResponseHead, body: Buffer): boolean {
    const text = responseHeadText(head);
    if (head.status >= 200 || head.status === 101) this.status = head.status;
    return this.#host.client.writeMessage(text, body);
  }
}

/** Chooses chunks for clients that support them: the end of a connection does not prove that a body is complete. */
function framingFor(framing: BodyFraming, version: "1.0" | "1.1"): BodyFraming {
  if (framing.kind === "close") return version === "1.0" ? untilClose : chunkedBody;
  return framing.kind === "chunked" && version === "1.0" ? untilClose : framing;
}
