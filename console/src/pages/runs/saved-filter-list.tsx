import { Bookmark, X } from "lucide-react";
import { useState } from "react";
import { Button } from "../../parts/button.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Field } from "../../parts/field.tsx";
import { visibleText } from "../../parts/visible-text.ts";
import styles from "./run-filters.module.css";
import { forgetFilter, saveFilter, useSavedFilters } from "./saved-filters.ts";

/** Filters by name, and a way to keep the one that is on. */
export function SavedFilters({ search, isNarrowed, onOpen }: { search: string; isNarrowed: boolean; onOpen(search: string): void }) {
  const saved = useSavedFilters();
  const [isNaming, setNaming] = useState(false);
  return (
    <>
      {saved.map((each) => (
        <span key={each.name} className={styles.saved} data-on={each.search === search}>
          <button type="button" onClick={() => onOpen(each.search)}>
            {visibleText(each.name)}
          </button>
          <button type="button" aria-label={`Forget the filter ${visibleText(each.name)}`} onClick={() => forgetFilter(each.name)}>
            <X aria-hidden="true" />
          </button>
        </span>
      ))}
      {isNarrowed && !saved.some((each) => each.search === search) && (
        <Button look="plain" icon={<Bookmark />} onClick={() => setNaming(true)}>
          Save filter
        </Button>
      )}
      {isNaming && <NameFilter search={search} onClose={() => setNaming(false)} />}
    </>
  );
}

function NameFilter({ search, onClose }: { search: string; onClose(): void }) {
  const [name, setName] = useState("");
  const save = () => {
    saveFilter({ name, search });
    onClose();
  };
  return (
    <Dialog
      title="Save this filter"
      onClose={onClose}
      actions={
        <Button look="main" onClick={save} disabled={name.trim() === ""}>
          Save
        </Button>
      }
    >
      <Field
        label="Name"
        value={name}
        maxLength={40}
        hint="It is kept in this browser."
        autoFocus
        onChange={(event) => setName(event.target.value)}
        onKeyDown={(event) => event.key === "Enter" && save()}
      />
    </Dialog>
  );
}
