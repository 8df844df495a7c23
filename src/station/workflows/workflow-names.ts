/** What workflows are called in the log and by people. */
export const workflowKind = { name: "workflow", prefix: "workflow/", idPrefix: "wf", listedBy: "caisson workflow ls" } as const;
