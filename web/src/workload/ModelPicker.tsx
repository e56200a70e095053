import { useState } from 'react';
import type { Model, Workload } from '../api/client';
import { site } from '../api/engine';
import { Button } from '../ui/Button';
import { Combobox, type Option } from '../ui/Combobox';
import { CodeDialog } from './CodeDialog';
import { ConfigDialog } from './ConfigDialog';
import { canCheckpoint, titleOf } from './subject';

interface Props {
  workload: Workload;
  models: Model[];
  onChange(patch: Partial<Workload>): void;
}

/** ModelPicker chooses a model of the catalog, by its name or that on the hub, or takes the config.json of another. */
export function ModelPicker({ workload, models, onChange }: Props) {
  const [pasting, setPasting] = useState(false);
  const [coding, setCoding] = useState(false);
  const options: Option[] = models.map((model) => ({
    value: model.id,
    name: model.name,
    note: model.id,
    also: [model.huggingface_id, ...(model.same ?? []), model.description].join(' '),
    group: model.type === 'vision' ? 'Images' : 'Text',
  }));
  const own = !workload.model && workload.config;
  return (
    <>
      <Combobox
        label="Model"
        options={options.toSorted((a, b) => (a.group ?? '').localeCompare(b.group ?? '') * -1)}
        value={workload.model}
        shown={titleOf(workload, models)}
        onChoose={(model) => onChange({ model, config: undefined, ...(canCheckpoint({ model }, models) ? {} : { checkpointing: undefined }) })}
      >
        <div className="grid grid-cols-2 gap-1">
          <Button look="quiet" onClick={() => setPasting(true)}>
            {own ? 'Change the config.json' : 'Use a config.json'}
          </Button>
          {site === undefined && (
            <Button look="quiet" onClick={() => setCoding(true)}>
              Use your own code
            </Button>
          )}
        </div>
      </Combobox>
      <ConfigDialog
        open={pasting}
        config={own ? workload.config : undefined}
        onClose={() => setPasting(false)}
        onUse={(config) => onChange({ model: undefined, config })}
      />
      <CodeDialog open={coding} workload={workload} onClose={() => setCoding(false)} />
    </>
  );
}
