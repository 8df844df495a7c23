/** Resources that end together, the last one first. Replaces `AsyncDisposableStack`, which Node 22 lacks. */
export class Resources implements AsyncDisposable {
  readonly #held: AsyncDisposable[] = [];

  use<Resource extends AsyncDisposable>(resource: Resource): Resource {
    this.#held.push(resource);
    return resource;
  }

  /** Ends all resources, even if one fails, then throws the first failure. */
  async [Symbol.asyncDispose](): Promise<void> {
    const failures: unknown[] = [];
    for (const resource of this.#held.splice(0).reverse()) {
      try {
        await resource[Symbol.asyncDispose]();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  }
}
