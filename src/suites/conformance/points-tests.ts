import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { SnapshotId } from "../../contract/ids.ts";
import type { ConformanceTest } from "./context.ts";
import { readText, rejectsWith, within, writeText } from "./expectations.ts";

const BYTES_MAX = 1024 ** 3;

/** Points of sessions, in layers or as snapshots. */
export const pointsTests: ConformanceTest[] = [
  {
    name: "points: a layer gets the files of a point back, and a fork has them",
    async run(context) {
      const { points } = context.runtime;
      if (points === undefined) return { skipped: "the runtime stores no layers" };
      const [path, layer, other] = [await context.hostFolder(), await context.hostFolder(), await context.hostFolder()];
      await writeFile(join(path, "theirs"), "theirs", { mode: 0o644 });
      const configOf = (each: string) => ({ workspace: { kind: "folder" as const, path, layer: each } });
      const first = await context.create(configOf(layer));
      await writeText(first, "/workspace/file", "one");
      await writeText(first, "/home/user/.known", "home");
      const take = { sandbox: first.id, bytesMax: BYTES_MAX };
      const point = await within(context, "taking a point", points.take(layer, take));
      assert.ok(point.isNew && point.id !== null && point.files > 0, "the first point is new");
      assert.deepEqual(await points.take(layer, take), { id: point.id, files: 0, bytes: 0, isNew: false });
      await writeText(first, "/workspace/file", "two");
      await first.remove("/home/user/.known");
      await first.remove("/workspace/theirs");
      const second = await points.take(layer, take);
      assert.notEqual(second.id, point.id, "a change is a new point");
      await first.destroy();
      await points.fork(layer, other, { point: point.id ?? "", bytesMax: BYTES_MAX });
      await points.restore(layer, point.id);
      for (const each of [layer, other]) {
        const again = await context.create(configOf(each));
        assert.equal(await readText(context, again, "/workspace/file"), "one");
        assert.equal(await readText(context, again, "/workspace/theirs"), "theirs");
        assert.equal(await readText(context, again, "/home/user/.known"), "home");
        await again.destroy();
      }
      assert.deepEqual((await points.list(layer)).sort(), [point.id, second.id].sort());
      await points.remove(layer, second.id ?? "");
      assert.deepEqual(await points.list(layer), [point.id]);
      for (const each of [layer, other]) await context.runtime.removeLayer?.(each);
      return undefined;
    },
  },
  {
    name: "points: a snapshot that a session keeps has the files of its time",
    async run(context) {
      const points = context.runtime.snapshotPoints;
      if (points === undefined) return { skipped: "the runtime has no points that are snapshots" };
      const [layer, other] = [await context.hostFolder(), await context.hostFolder()];
      const first = await context.create();
      const take = { sandbox: first.id, last: null, base: null, bytesMax: BYTES_MAX };
      await writeText(first, "/workspace/file", "one");
      const point = await within(context, "taking a point", points.take(layer, take));
      assert.ok(point.isNew && point.id !== null && point.files > 0, "the first point is new");
      const id: SnapshotId = point.id;
      assert.deepEqual(await points.take(layer, { ...take, last: id }), { id, files: 0, bytes: 0, isNew: false });
      await writeText(first, "/workspace/file", "two");
      const second = await points.take(layer, { ...take, last: id });
      assert.ok(second.isNew && second.id !== null && second.id !== id, "a change is a new point");
      await first.destroy();
      assert.deepEqual(
        (await context.runtime.snapshots()).filter((each) => each.id === id),
        [],
        "a point is not listed as a snapshot",
      );
      await points.keep(other, id);
      await points.remove(layer, id);
      const again = await context.create({ template: { kind: "snapshot", id } });
      assert.equal(await readText(context, again, "/workspace/file"), "one");
      await again.destroy();
      assert.deepEqual([await points.list(layer), await points.list(other)], [[second.id], [id]]);
      await points.remove(layer, second.id);
      await points.remove(other, id);
      await rejectsWith(context, "not_found", "keeping a removed point", () => points.keep(layer, id));
      return undefined;
    },
  },
];
