import { Command } from "cmdk";
import { useEffect, useState } from "react";
import { useLocation } from "wouter";
import { useRuns, useSandboxes } from "../data/queries.ts";
import { useWork } from "../data/work-queries.ts";
import { Dialog } from "../parts/dialog.tsx";
import { visibleText, visibleTitle } from "../parts/visible-text.ts";
import styles from "./palette.module.css";
import { shortcuts } from "./shortcuts.ts";

const SHOWN_MAX = 50;

/** Requires every word of the search, because scattered letters match ids by chance. */
function hasEveryWord(value: string, search: string): 0 | 1 {
  const text = value.toLowerCase();
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word))
    ? 1
    : 0;
}

/** Goes to any page or thing by a part of its name. */
export default function Palette({ takeTyped, onClose }: { takeTyped(): string; onClose(): void }) {
  const [, navigate] = useLocation();
  const [search, setSearch] = useState("");
  // Runs when the dialog is open. Letters are collected until then, even during this render.
  // biome-ignore lint/correctness/useExhaustiveDependencies: once, when it is shown.
  useEffect(() => setSearch(takeTyped()), []);
  const runs = useRuns().data?.runs.slice(0, SHOWN_MAX) ?? [];
  const sandboxes = useSandboxes().data?.sandboxes.slice(-SHOWN_MAX) ?? [];
  const work = useWork().data?.slice(0, SHOWN_MAX) ?? [];
  const go = (href: string) => {
    onClose();
    navigate(href);
  };
  return (
    <Dialog title="Go to" onClose={onClose}>
      <Command label="Go to" className={styles.palette} filter={hasEveryWord}>
        <Command.Input placeholder="A page, a run, a sandbox…" className={styles.input} value={search} onValueChange={setSearch} />
        <Command.List className={styles.list}>
          <Command.Empty>No matches.</Command.Empty>
          <Command.Group heading="Pages">
            {shortcuts.flatMap(({ does, href, keys }) =>
              href === undefined
                ? []
                : [
                    <Command.Item key={href} value={does} onSelect={() => go(href)}>
                      {does} <kbd>{keys}</kbd>
                    </Command.Item>,
                  ],
            )}
          </Command.Group>
          <Command.Group heading="Runs">
            {runs.map((view) => (
              <Command.Item key={view.run} value={`${view.run} ${view.name ?? ""} ${view.title}`} onSelect={() => go(`/runs/${view.run}`)}>
                <span className={styles.name}>{visibleTitle(view.name ?? view.title)}</span>
              </Command.Item>
            ))}
          </Command.Group>
          <Command.Group heading="Work">
            {work.map(({ id, kind, name, title, href }) => (
              <Command.Item key={id} value={`${kind} ${id} ${name ?? ""} ${title}`} onSelect={() => go(href)}>
                <span className={styles.name}>{visibleText(name ?? title)}</span> <kbd>{kind}</kbd>
              </Command.Item>
            ))}
          </Command.Group>
          <Command.Group heading="Sandboxes">
            {sandboxes.map((info) => (
              <Command.Item key={info.id} value={`${info.id} ${info.name ?? ""}`} onSelect={() => go(`/sandboxes/${info.id}`)}>
                {visibleText(info.name ?? info.id)}
              </Command.Item>
            ))}
          </Command.Group>
        </Command.List>
      </Command>
    </Dialog>
  );
}
