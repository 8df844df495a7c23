import { z } from "zod";

/** A frozen layer as it is mounted: its own changes, or `whole`, which also contains those of all layers below it. */
export const MountedLayer = z.object({ id: z.string(), whole: z.boolean() });
export type MountedLayer = z.infer<typeof MountedLayer>;
