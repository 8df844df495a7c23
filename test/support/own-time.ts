const TICK_MS = 10;

/** How many milliseconds something took by a clock that stands still while a busy machine gives this process no turn. */
export async function ownMs(work: Promise<unknown>): Promise<number> {
  let ticks = 0;
  const clock = setInterval(() => {
    ticks += 1;
  }, TICK_MS);
  try {
    await work;
  } finally {
    clearInterval(clock);
  }
  return ticks * TICK_MS;
}
