/** What ships are to those who look for them. */
export const shipNames = { name: "ship", prefix: "ship/", idPrefix: "ship", listedBy: "caisson ship ls" } as const;
