import { useState } from "react";
import { Link, useLocation } from "wouter";
import { Button } from "../../parts/button.tsx";
import { Copy } from "../../parts/copy.tsx";
import { Page } from "../../parts/page.tsx";
import { Problem } from "../../parts/problem.tsx";
import { ScrollBox } from "../../parts/scroll-box.tsx";
import { useStation } from "../../station/station.tsx";
import styles from "./welcome.module.css";

const command = 'caisson run "Make the tests pass"';

/** For the first time: one press, and a run is at work that can be watched. */
export default function Welcome() {
  const station = useStation();
  const [, navigate] = useLocation();
  const [error, setError] = useState<unknown>(null);
  const [isStarting, setStarting] = useState(false);
  const start = async () => {
    setStarting(true);
    try {
      const { run } = await station.runs.start({
        task: "Write a small program with a test, and mend what the test finds.",
        model: "scripted:demo",
        labels: { demo: "yes" },
        attended: true,
        detached: true,
      });
      navigate(`/runs/${run}`);
    } catch (failure) {
      setError(failure);
      setStarting(false);
    }
  };
  return (
    <Page title="Welcome">
      <div className={styles.welcome}>
        <h2>Whatever an agent does, it does inside.</h2>
        <p>
          Caisson gives every agent a sandbox of its own on this machine. You watch it here, answer what it asks, and decide what becomes of
          its changes.
        </p>
        <ol className={styles.steps}>
          <li>
            <h3>Watch one at work</h3>
            <p>A scripted model, which costs nothing and needs no key, does a small piece of work in a real sandbox.</p>
            <Button look="main" disabled={isStarting} onClick={() => void start()}>
              {isStarting ? "Starting…" : "Start the demo run"}
            </Button>
            {error !== null && <Problem error={error} />}
          </li>
          <li>
            <h3>Start your own</h3>
            <p>
              From the <Link href="/start">form</Link>, or in a terminal, in the folder it is about:
            </p>
            <div className={styles.command}>
              <ScrollBox as="code" label="The command">
                {command}
              </ScrollBox>
              <Copy text={command} what="the command" />
            </div>
          </li>
          <li>
            <h3>See what this machine can do</h3>
            <p>
              The <Link href="/settings/doctor">doctor's report</Link> says which walls there are, and what would make them stronger.
            </p>
          </li>
        </ol>
      </div>
    </Page>
  );
}
