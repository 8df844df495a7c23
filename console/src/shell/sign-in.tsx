import { type FormEvent, useState } from "react";
import { connect } from "../../../src/client/connect.ts";
import { Button } from "../parts/button.tsx";
import { Field } from "../parts/field.tsx";
import { useTitle } from "../parts/page.tsx";
import { wordsOf } from "../parts/problem.tsx";
import styles from "./sign-in.module.css";

/** Asks for a token, and tries it before it is stored. */
export function SignIn({ notice, onToken }: { notice?: string | undefined; onToken(token: string): void }) {
  const [problem, setProblem] = useState<string | undefined>();
  const [isTrying, setTrying] = useState(false);
  useTitle("Sign in");
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const token = String(new FormData(event.currentTarget).get("token") ?? "").trim();
    if (token === "") return setProblem("Paste a token here.");
    setTrying(true);
    try {
      await connect({ url: location.origin, token }).status();
      onToken(token);
    } catch (error) {
      setProblem(wordsOf(error).message);
      setTrying(false);
    }
  };
  return (
    <main className={styles.page} id="main">
      <form className={styles.form} onSubmit={submit}>
        <img src="/favicon.svg" alt="" width={32} height={32} />
        <h1>Sign in to this station</h1>
        {notice !== undefined && <p role="alert">{notice}</p>}
        <Field
          label="Token"
          name="token"
          type="password"
          autoComplete="current-password"
          placeholder="tok_…"
          problem={problem}
          hint={
            <>
              <code>caisson console</code> prints an address that signs you in; <code>caisson token create me</code> creates a token.
            </>
          }
        />
        <Button look="main" type="submit" disabled={isTrying}>
          {isTrying ? "Signing in…" : "Sign in"}
        </Button>
      </form>
    </main>
  );
}
