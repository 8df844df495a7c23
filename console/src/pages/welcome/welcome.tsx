import { useState } from "react";
import { Link, useLocation } from "wouter";
import { useStation } from "../../data/station.tsx";
import { Button } from "../../parts/button.tsx";
import { Copy } from "../../parts/copy.tsx";
import { Page } from "../../parts/page.tsx";
import { Problem } from "../../parts/problem.tsx";
import { ScrollBox } from "../../parts/scroll-box.tsx";
import styles from "./welcome.module.css";

const command = 'caisson run "Make the tests pass"';

/** The first page of a new user: one click starts a run to watch. */
export default function Welcome() {
  const station = useStation();
  const [, navigate] = useLocation();
  const [error, setError] = useState<unknown>(null);
  const [isStarting, setStarting] = useState(false);
  const start = async () => {
    setStarting(true);
    try {
      const { run } = await station.runs.start({
        task: "Write a small program with a test, and fix what the test finds.",
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
        <h2>Everything an agent does stays in its sandbox.</h2>
        <p>
          Caisson gives every agent its own sandbox on this machine. You watch it here, answer its questions, and decide what to do with its
          changes.
        </p>
        <ol className={styles.steps}>
          <li>
            <h3>Watch an agent work</h3>
            <p>A scripted model does a small task in a real sandbox. It is free and needs no key.</p>
            <Button look="main" disabled={isStarting} onClick={() => void start()}>
              {isStarting ? "Starting…" : "Start the demo run"}
            </Button>
            {error !== null && <Problem error={error} />}
          </li>
          <li>
            <h3>Start your own</h3>
            <p>
              Use the <Link href="/start">form</Link>, or run this in your project folder:
            </p>
            <div className={styles.command}>
              <ScrollBox as="code" label="Command">
                {command}
              </ScrollBox>
              <Copy text={command} what="command" />
            </div>
          </li>
          <li>
            <h3>See what this machine can do</h3>
            <p>
              The <Link href="/settings/doctor">doctor's report</Link> shows how well this machine can isolate sandboxes, and how to improve
              that.
            </p>
          </li>
        </ol>
      </div>
    </Page>
  );
}
