import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { CaissonError } from "../../../contract/error/error.ts";
import { isRefName } from "../ref-name.ts";
import { readAdvertisedRefs } from "./advertised-refs.ts";
import { fetchRequest, readFetchedPack } from "./fetch-request.ts";
import { FLUSH, pktLine, readPktLines } from "./pkt-line.ts";
import { pushRequest, readPushReport } from "./push-request.ts";

const [one, two] = ["1".repeat(40), "2".repeat(40)];
const lines = (...all: (string | null)[]) => Buffer.concat(all.map((line) => (line === null ? FLUSH : pktLine(line))));

describe("protocol lines", () => {
  test("are read as they were written, whatever they contain", () => {
    fc.assert(
      fc.property(fc.array(fc.option(fc.uint8Array({ maxLength: 300 }), { nil: null })), (payloads) => {
        const written = Buffer.concat(payloads.map((line) => (line === null ? FLUSH : pktLine(Buffer.from(line)))));
        const { lines: read, rest } = readPktLines(written, { linesMax: 1000 });
        expect(read.map((line) => (line === null ? null : [...line]))).toEqual(payloads.map((line) => (line === null ? null : [...line])));
        expect(rest).toHaveLength(0);
      }),
    );
  });

  test("are rejected if malformed, without any other effect", () => {
    for (const text of ["0001", "0003x", "00ff", "zzzz", "-001", "fff1", "00"])
      expect(() => readPktLines(Buffer.from(text), { linesMax: 10 })).toThrow(CaissonError);
    expect(() => readPktLines(lines("a", "b", "c"), { linesMax: 2 })).toThrow(/more than 2/);
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        try {
          readAdvertisedRefs(Buffer.from(bytes), "git-upload-pack");
        } catch (error) {
          expect(error).toBeInstanceOf(CaissonError);
        }
      }),
    );
    expect(() => pktLine("x".repeat(70_000))).toThrow(/at most/);
  });
});

describe("advertised refs", () => {
  const answer = (...refs: string[]) => lines("# service=git-upload-pack\n", null, ...refs, null);

  test("include the default branch, but no invalid names", () => {
    const read = readAdvertisedRefs(
      answer(
        `${one} HEAD\0multi_ack symref=HEAD:refs/heads/main agent=x\n`,
        `${one} refs/heads/main\n`,
        `${two} refs/heads/../../x\n`,
        `${two} refs/tags/v1^{}\n`,
      ),
      "git-upload-pack",
    );
    expect([...read.refs]).toEqual([["refs/heads/main", one]]);
    expect(read.head).toBe("refs/heads/main");
  });

  test("are empty for an empty repository", () => {
    expect(readAdvertisedRefs(answer(`${"0".repeat(40)} capabilities^{}\0report-status\n`), "git-upload-pack").refs.size).toBe(0);
  });

  test("are rejected in the answer to another request", () => {
    expect(() => readAdvertisedRefs(answer(), "git-receive-pack")).toThrow(/does not answer/);
    expect(() => readAdvertisedRefs(answer("none refs/heads/main\n"), "git-upload-pack")).toThrow(/without a commit/);
  });
});

describe("a push", () => {
  const updates = [
    { ref: "refs/heads/a", from: null, to: one },
    { ref: "refs/heads/b", from: two, to: null },
  ];

  test("sends the old and new commit of each ref", () => {
    const body = pushRequest(updates, { pack: Buffer.from("PACK"), capabilities: new Set(["report-status", "atomic"]) }).toString();
    expect(body).toContain(`${"0".repeat(40)} ${one} refs/heads/a\0 report-status atomic agent=caisson\n`);
    expect(body).toContain(`${two} ${"0".repeat(40)} refs/heads/b\n`);
    expect(body.endsWith("0000PACK")).toBe(true);
  });

  test("succeeds only if the remote confirms each ref", () => {
    const [done, also] = ["ok refs/heads/a\n", "ok refs/heads/b\n"];
    expect(() => readPushReport(lines("unpack ok\n", done, also, null), updates)).not.toThrow();
    expect(() => readPushReport(lines("unpack ok\n", done, null), updates)).toThrow(/does not report/);
    expect(() => readPushReport(lines("unpack ok\n", done, "ng refs/heads/b hook declined\n", null), updates)).toThrow(
      /refused refs\/heads\/b: hook declined/,
    );
    expect(() => readPushReport(lines("unpack index-pack failed\n", null), updates)).toThrow(/could not unpack/);
    expect(() => readPushReport(Buffer.alloc(0), updates)).toThrow(/does not report/);
    const banded = (report: Buffer, ...words: string[]) => lines(`\u0001${report}`, ...words.map((each) => `\u0002${each}`), null);
    const fine = lines("unpack ok\n", done, also, null);
    expect(readPushReport(banded(fine, "see \u001b[31mthe\n", "docs\n", "x".repeat(5000)), updates).said).toMatch(
      /^see \[31mthe docs x{900,985}$/,
    );
    const no = lines("unpack ok\n", done, "ng refs/heads/b pre-receive hook declined\n", null);
    expect(() => readPushReport(banded(no, "no ticket s3cret\n"), updates, { clean: (text) => text.replace("s3cret", "***") })).toThrow(
      "the remote refused refs/heads/b: pre-receive hook declined; it says: no ticket ***",
    );
    expect(() => readPushReport(lines("\u0003out of memory\n", null), updates)).toThrow(/gave up: out of memory/);
  });
});

test("requests commits in a fetch, and reads the pack that follows", () => {
  expect(fetchRequest({ wants: [one], haves: [two] }).toString()).toMatch(
    new RegExp(`want ${one} .*\\n0000....have ${two}\\n0009done\\n$`),
  );
  expect(readFetchedPack(Buffer.concat([lines(`ACK ${two}\n`), Buffer.from("PACK…")])).toString()).toBe("PACK…");
  expect(() => readFetchedPack(lines("NAK\n"))).toThrow(/no pack/);
  expect(() => readFetchedPack(lines("ERR not our ref\n"))).toThrow(/not our ref/);
});

test.each(["refs/heads/a", "refs/heads/a/b-c.d", "refs/tags/v1"])("%s is a ref name", (name) => expect(isRefName(name)).toBe(true));
test.each([
  "heads/a",
  "refs/heads/",
  "refs/heads/.a",
  "refs/heads/a..b",
  "refs/heads/a.lock",
  "refs/heads/a b",
  "refs/heads/a\n",
  "refs//a",
  "refs/heads/a@{1}",
  "refs/heads/a.",
])("%j is not a ref name", (name) => expect(isRefName(name)).toBe(false));
