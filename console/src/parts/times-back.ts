/** The time ranges that lists can be filtered by. */
export const timesBack = { "1h": 3_600_000, "24h": 86_400_000, "7d": 7 * 86_400_000, "30d": 30 * 86_400_000 } as const;
export type TimeBack = keyof typeof timesBack;

export const times: readonly { value: TimeBack; label: string }[] = [
  { value: "1h", label: "Last hour" },
  { value: "24h", label: "Last 24 hours" },
  { value: "7d", label: "Last 7 days" },
  { value: "30d", label: "Last 30 days" },
];

export const isTimeBack = (text: string | null): text is TimeBack => text !== null && Object.hasOwn(timesBack, text);
