import fc from "fast-check";
import { expect, onTestFinished, test } from "vitest";
import { tries } from "../../../test/support/thorough.ts";
import { CaissonError } from "../../contract/error/error.ts";
import { answers, decodeFields, entries, type Shape, shapes } from "./fields.ts";
import { createFrameParser, encodeFrame, FRAME_HEADER_BYTES, FRAME_PAYLOAD_MAX, type FrameName, frameName, frameTypes } from "./frame.ts";
import { decodeCredit, decodeOutputHead, decodeStdinAck } from "./raw.ts";

const toHost = (Object.keys(frameTypes) as FrameName[]).filter((name) => frameTypes[name].direction !== "toGuest");
const frames = fc.array(
  fc.record({
    type: fc.constantFrom(...toHost),
    stream: fc.integer({ min: 0, max: 0xffff_ffff }),
    payload: fc.uint8Array({ maxLength: 300 }),
  }),
  { maxLength: 20 },
);

function parse(chunks: Buffer[]): { type: string; stream: number; payload: string }[] {
  const seen: { type: string; stream: number; payload: string }[] = [];
  const parser = createFrameParser({
    receiver: "host",
    onFrame: (type, stream, payload) => seen.push({ type: frameName(type), stream, payload: payload.toString("hex") }),
  });
  for (const chunk of chunks) {
    parser.push(chunk);
    expect(parser.heldBytes).toBeLessThanOrEqual(FRAME_HEADER_BYTES + FRAME_PAYLOAD_MAX);
  }
  return seen;
}

test("parses the same frames no matter how the bytes are split", () => {
  fc.assert(
    fc.property(frames, fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 200 }), (sent, cuts) => {
      const bytes = Buffer.concat(sent.map(({ type, stream, payload }) => encodeFrame(type, stream, payload)));
      const chunks: Buffer[] = [];
      for (let at = 0, i = 0; at < bytes.length; i += 1) {
        const size = cuts[i % cuts.length] as number;
        chunks.push(bytes.subarray(at, at + size));
        at += size;
      }
      const expected = sent.map(({ type, stream, payload }) => ({ type, stream, payload: Buffer.from(payload).toString("hex") }));
      expect(parse(chunks)).toEqual(expected);
      expect(parse([bytes])).toEqual(expected);
    }),
  );
});

test("passes on bulk data in parts that add up to the same bytes", () => {
  fc.assert(
    fc.property(frames, fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 200 }), (sent, cuts) => {
      const bytes = Buffer.concat(sent.map(({ type, stream, payload }) => encodeFrame(type, stream, payload)));
      const seen: { type: string; stream: number; payload: string }[] = [];
      const parser = createFrameParser({
        receiver: "host",
        onFrame: (type, stream, payload) => seen.push({ type: frameName(type), stream, payload: payload.toString("hex") }),
        onBulk: (type, stream, head, data, position) => {
          const last = seen.at(-1);
          if (position > 0 && last !== undefined) last.payload += data.toString("hex");
          else seen.push({ type: frameName(type), stream, payload: head.toString("hex") + data.toString("hex") });
        },
      });
      for (let at = 0, i = 0; at < bytes.length; i += 1) {
        const size = cuts[i % cuts.length] as number;
        parser.push(bytes.subarray(at, at + size));
        at += size;
        expect(parser.heldBytes).toBeLessThanOrEqual(FRAME_HEADER_BYTES + 300);
      }
      expect(seen).toEqual(sent.map(({ type, stream, payload }) => ({ type, stream, payload: Buffer.from(payload).toString("hex") })));
    }),
  );
});

test("parses a frame of the maximum size, byte by byte at the edges", () => {
  const payload = Buffer.alloc(FRAME_PAYLOAD_MAX, 7);
  const bytes = encodeFrame("DATA", 1, payload);
  const chunks = [...Array.from({ length: 20 }, (_, i) => bytes.subarray(i, i + 1)), bytes.subarray(20, -3), bytes.subarray(-3)];
  expect(parse(chunks)).toEqual([{ type: "DATA", stream: 1, payload: payload.toString("hex") }]);
});

test("allocates nothing for a length that it rejects", () => {
  const parser = createFrameParser({ receiver: "host", onFrame: () => {} });
  const header = Buffer.from("ffffffff0800000001000000", "hex");
  expect(() => parser.push(header.subarray(0, 3))).not.toThrow();
  expect(() => parser.push(header.subarray(3))).toThrowError(expect.objectContaining({ code: "protocol" }));
  expect(() => parser.push(Buffer.alloc(1))).toThrowError(expect.objectContaining({ code: "protocol" }));
});

test("rejects frame types of the other direction on both sides", () => {
  for (const [name, { direction }] of Object.entries(frameTypes)) {
    for (const receiver of ["host", "guest"] as const) {
      const parser = createFrameParser({ receiver, onFrame: () => {} });
      const push = () => parser.push(encodeFrame(name as FrameName, 1));
      if (direction === "both" || (direction === "toHost") === (receiver === "host")) expect(push).not.toThrow();
      else expect(push).toThrowError(expect.objectContaining({ code: "protocol" }));
    }
  }
});

test("throws nothing but protocol errors for mutated frames", () => {
  const seeds = seedFrames();
  const random = xorshift(0x9e3779b9);
  const decoders: ((payload: Buffer) => unknown)[] = [
    ...[...Object.values(shapes), ...Object.values(answers), ...Object.values(entries)].map(
      (shape) => (payload: Buffer) => decodeFields("fuzz", shape as Shape, payload),
    ),
    decodeCredit,
    decodeOutputHead,
    decodeStdinAck,
  ];
  // Most rounds end in an error, and its stack trace would cost more than everything else.
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  onTestFinished(() => {
    Error.stackTraceLimit = stackTraceLimit;
  });
  let accepted = 0;
  let refused = 0;
  const guarded = (work: () => void) => {
    try {
      work();
      accepted += 1;
    } catch (error) {
      if (!(error instanceof CaissonError) || error.code !== "protocol") throw error;
      refused += 1;
    }
  };
  for (let round = 0; round < tries(200_000); round += 1) {
    const seed = seeds[random() % seeds.length] as Buffer;
    const mutated = Buffer.from(seed);
    for (let flips = random() % 4; flips >= 0; flips -= 1) mutated[random() % mutated.length] = random() & 0xff;
    const bytes = random() % 8 === 0 ? mutated.subarray(0, random() % mutated.length) : mutated;
    const decode = decoders[random() % decoders.length] as (payload: Buffer) => unknown;
    const parser = createFrameParser({ receiver: "host", onFrame: (_type, _stream, payload) => decode(payload) });
    guarded(() => parser.push(bytes));
  }
  // Both outcomes must be common, or the mutations prove nothing.
  expect(accepted).toBeGreaterThan(tries(2_000));
  expect(refused).toBeGreaterThan(tries(20_000));
});

function seedFrames(): Buffer[] {
  const field = (tag: number, text: string) => Buffer.concat([Buffer.from([tag, text.length, 0, 0, 0]), Buffer.from(text)]);
  const number = (tag: number) => Buffer.from([tag, 8, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0]);
  const payloads = [
    Buffer.alloc(0),
    Buffer.concat([field(1, "name"), number(2), number(3), number(4), number(5), number(6), number(7), field(8, "target")]),
    Buffer.concat([number(1), number(2), number(3), number(4), number(5), number(6), number(7)]),
    Buffer.concat([field(1, "ref"), number(2), number(3), number(4), number(5)]),
    Buffer.from([1, 0, 0, 0, 0, 0, 0, 0, 0, 65, 66]),
    Buffer.alloc(8),
    Buffer.alloc(4, 1),
  ];
  return toHost.flatMap((name) => payloads.map((payload) => encodeFrame(name, 1, payload)));
}

/** Deterministic, to reproduce failures. */
function xorshift(seed: number): () => number {
  let state = seed;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return state >>> 0;
  };
}
