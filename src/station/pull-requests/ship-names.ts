/** The names by which lookups find ships. */
export const shipNames = { name: "ship", prefix: "ship/", idPrefix: "ship", listedBy: "caisson ship ls" } as const;
