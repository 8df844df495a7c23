import { useEffect, useState } from "react";
import { connect } from "../../../src/client/connect.ts";
import { Button } from "../parts/button.tsx";
import { useTitle } from "../parts/page.tsx";
import { wordsOf } from "../parts/problem.tsx";
import styles from "./sign-in.module.css";

/** The address brought another token than the one that is kept: shows whose both are, and asks. */
export function SwitchToken({ kept, brought, onChosen }: { kept: string; brought: string; onChosen(token: string): void }) {
  const [current, other] = [useHolder(kept), useHolder(brought)];
  useTitle("Switch token?");
  return (
    <main className={styles.page} id="main">
      <div className={styles.form}>
        <h1>Use another token?</h1>
        <p>The address that you opened brings a token. If you did not ask for it, stay signed in.</p>
        <dl>
          <dt>Signed in as</dt>
          <dd>{current}</dd>
          <dt>The address brings</dt>
          <dd>{other}</dd>
        </dl>
        <Button look="main" onClick={() => onChosen(kept)}>
          Stay signed in
        </Button>
        <Button onClick={() => onChosen(brought)}>Use the other token</Button>
      </div>
    </main>
  );
}

/** Whose token it is and what it may do, in the station's words. */
function useHolder(token: string): string {
  const [text, setText] = useState("…");
  useEffect(() => {
    const asked = connect({ url: location.origin, token }).status();
    asked.then(
      ({ caller }) => setText(caller === undefined ? "an unknown owner" : `${caller.owner}, ${caller.by}, scope ${caller.scope ?? "none"}`),
      (error: unknown) => setText(wordsOf(error).message),
    );
  }, [token]);
  return text;
}
