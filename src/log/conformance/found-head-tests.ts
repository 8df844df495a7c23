import { expect, test } from "vitest";
import type { Log, NewEvent } from "../log.ts";
import { over, questionEvent } from "./head-tests.ts";
import type { UseLog } from "./use-log.ts";

/** Tests finding streams by their heads. */
export function testFoundHeads(using: UseLog): void {
  test("finds open and ended runs by label, owner and time, last changed first", () =>
    using(async (_, open) => {
      let now = Date.parse("2030-01-01T00:00:00.000Z");
      const log = await open({ nowMs: () => now });
      const created = (n: number): NewEvent => ({
        type: "run.created",
        version: 1,
        data: {
          run: `run_${"abcdefgh"[n]}aaaaaaaaaaa`,
          parent: null,
          session: "work",
          agent: { name: "coder", digest: "0", definition: { name: "coder", system: "Work." } },
          task: n === 3 ? "Mend the fence" : "Paint the wall",
          model: "scripted",
          budgets: {},
          ...(n % 2 === 1 && { owner: "ada" }),
          labels: { team: n < 4 ? "a.b=c" : "other" },
        },
      });
      for (let n = 0; n < 8; n++) {
        now += 1000;
        await log.append(`run/${n}`, n < 6 ? [created(n), over] : [created(n)]);
      }
      const streams = async (query: Partial<Parameters<Log["heads"]>[0]>) =>
        (await log.heads({ prefix: "run/", limit: 10, ...query })).heads.map(({ stream }) => stream.slice(4)).join("");
      expect(await streams({})).toBe("76543210");
      expect(await streams({ where: { owner: ["ada"] } })).toBe("7531");
      expect(await streams({ terms: ["label:team=a.b=c"] })).toBe("3210");
      expect(await streams({ terms: ["label:team=a.b=c"], where: { owner: ["ada"], agent: ["coder"], finish: ["done", "error"] } })).toBe(
        "31",
      );
      expect(await streams({ terms: ["label:team=other"] })).toBe("7654");
      expect(await streams({ where: { owner: [] } })).toBe("");
      expect(await streams({ updated: { from: "2030-01-01T00:00:04.000Z", before: "2030-01-01T00:00:08.000Z" } })).toBe("6543");
      expect(await streams({ matches: (head) => (head as { title: string }).title.includes("fence") })).toBe("3");
      // A run that continues is open again, and an ended run is sorted by its last end.
      now += 1000;
      await log.append("run/3", [{ type: "run.reopened", version: 1, data: { by: "me", budgets: {} } }]);
      expect(await streams({ where: { owner: ["ada"] } })).toBe("3751");
      expect(await streams({ open: false, where: { owner: ["ada"] } })).toBe("51");
      now += 1000;
      await log.append("run/1", [questionEvent("ask_aaaaaaaaaaaa")]);
      await log.append("run/3", [over]);
      expect(await streams({ open: false, where: { owner: ["ada"] } })).toBe("135");
      const page = await log.heads({ prefix: "run/", limit: 2, where: { owner: ["ada"] } });
      const last = page.heads.at(-1) as { at: string; stream: string };
      expect([page.total, await streams({ where: { owner: ["ada"] }, after: last })]).toEqual([4, "75"]);
      await log.remove("run/5");
      expect(await streams({ where: { owner: ["ada"] } })).toBe("137");
    }));

  test("finds no ended streams of another kind", () =>
    using(async (log) => {
      const created = { type: "driven.created", version: 1, data: { id: "spec_aaaaaaaaaaaa", title: "Words", parent: null } };
      const ended = { type: "driven.ended", version: 1, data: { finish: "completed", text: null } };
      await log.append("run/1", [over]);
      await log.append("spec/1", [created, ended]);
      const findHeads = async (prefix: string, filter: Partial<Parameters<Log["heads"]>[0]> = {}) => {
        const { heads, total } = await log.heads({ prefix, limit: 10, ...filter });
        return [total, ...heads.map(({ stream }) => stream)];
      };
      for (const filter of [{}, { where: { owner: ["local"] } }, { matches: () => true }]) {
        expect(await findHeads("run/", filter)).toEqual([1, "run/1"]);
        expect(await findHeads("spec/", filter)).toEqual([1, "spec/1"]);
      }
    }));
}
