const TICK_MS = 10;

/**
 * Measures the milliseconds of some work with a clock that stops while a busy machine does not schedule this process.
 */
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
