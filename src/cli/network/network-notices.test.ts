import { expect, test } from "vitest";
import { NetworkDenied } from "../../contract/network/network-event.ts";
import type { Line } from "../terminal/line.ts";
import { createNetworkNotices } from "./network-notices.ts";

const denied = (host: string) =>
  NetworkDenied.make({
    sandbox: "sb_aaaaaaaaaaaa",
    host,
    port: 443,
    via: "connect",
    reason: "host_not_allowed",
    method: null,
    path: null,
    text: `${host} is not allowed\nAllow it: --network ${host}\nand more`,
    count: 1,
  });

function collect(when: "atOnce" | "afterwards") {
  const printed: string[][] = [];
  const print = async (lines: readonly Line[]) => void printed.push(lines.map(({ text }) => text));
  return { printed, notices: createNetworkNotices({ print, when }) };
}

test("denials during a full-screen program are printed afterwards, each host once", async () => {
  const { printed, notices } = collect("afterwards");
  for (const host of ["a.test", "b.test", "a.test"]) notices.take(denied(host));
  expect(printed).toEqual([]);
  await notices.flush();
  await notices.flush();
  expect(printed).toEqual([[expect.stringContaining("a.test"), expect.stringContaining("b.test")]]);
});

test("denials of other programs are printed at once, at most twenty", async () => {
  const { printed, notices } = collect("atOnce");
  for (let index = 0; index < 30; index++) notices.take(denied(`h${index}.test`));
  expect(printed).toHaveLength(20);
  await notices.flush();
  expect(printed).toHaveLength(20);
});
