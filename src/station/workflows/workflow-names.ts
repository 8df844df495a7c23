/** The names of workflows in the log and for users. */
export const workflowKind = { name: "workflow", prefix: "workflow/", idPrefix: "wf", listedBy: "caisson workflow ls" } as const;
