import type { Answer } from '../api/client';
import { count, dollars, factor } from '../format';
import { Evidence } from '../ui/Evidence';
import { NumberInput } from '../ui/Inputs';
import { Panel } from '../ui/Panel';
import type { QuestionState } from '../workload/useQuestion';

/** Cost says what the faster batch saves in a year; hours and price can be changed, the server computes. */
export function Cost({ answer, state: { question, ask } }: { answer: Answer; state: QuestionState }) {
  return (
    <Panel title="What it costs" aside={<Evidence engine={answer.speedup_basis} errors={answer.accuracy?.step_time} />}>
      <div className="grid grid-cols-2 gap-4">
        <NumberInput
          label="GPU hours per year"
          value={question.hours_per_year ?? answer.hours_per_year}
          step="any"
          onChange={(hours_per_year) => ask({ hours_per_year })}
        />
        <NumberInput
          label="Dollars per hour"
          value={question.price_per_hour ?? answer.price_per_hour}
          step="any"
          placeholder="not known"
          onChange={(price_per_hour) => ask({ price_per_hour })}
        />
      </div>
      <p className="mt-3 text-xs text-muted">
        {question.price_per_hour === undefined && answer.price_source ? `Price: ${answer.price_source}.` : 'Your own price.'}
      </p>
      <p className="mt-5 text-sm" aria-live="polite">
        {!answer.current_fits ? (
          <span className="text-muted">Batch {count(answer.current_batch_size)} does not fit, so there is nothing to compare with.</span>
        ) : answer.cost_savings_annual === undefined || !answer.speedup ? (
          <span className="text-muted">Enter a price to see what the largest batch would save.</span>
        ) : (
          <>
            <span className="text-2xl font-semibold tracking-tight">{dollars(answer.cost_savings_annual)}</span>{' '}
            <span className="text-muted">less in a year for the same samples, at {factor(answer.speedup)} the speed.</span>
          </>
        )}
      </p>
    </Panel>
  );
}
