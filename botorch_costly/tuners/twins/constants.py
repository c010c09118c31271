"""Constants of the twins: thresholds, shares and factors that were chosen by experiment, in one place.

Units: A *slope* is log loss gained per unit of log-time. An *advantage* is a difference of levels divided
by the slope of the run, at least ``typical_slope``. A *decade* is the step in the unit cube that
multiplies a learning rate by ten. A share of the horizon counts rounds of compute.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class TwinConstants:
    """Constants of the twins; each line states meaning and unit."""

    # Metrics and learning curve
    least_error: float = 1e-4  # share of errors; smaller ones count as this
    first_slope: float = 0.3  # slope assumed before there are two levels
    typical_slope: float = 0.1  # slope of a run that compute binds
    steepest_final_slope: float = 0.2  # largest slope at the end of a run
    stuck_slope: float = 0.02  # slope below which a run hardly learns
    least_slope: float = 1e-3  # smallest upper bound of a slope
    level_noise: float = 0.01  # smallest standard deviation of a level, log loss
    slope_levels: int = 4  # levels; with fewer the upper bound stands for the slope
    slope_window: float = 2.0  # factor of the rounds trained over which a slope is fitted

    # Account of a run
    promised_share: float = 0.2  # share of a trial's expected gain that exploring may cost
    early_queries: float = 0.05  # share of the horizon by which queries may run ahead of their pace
    comparison: int = 4  # queries: the incumbent's, a trial's, and two that confirm it

    # Length and radius of trials
    shortest_trial: float = 0.015  # share of the horizon
    trial_growth: float = 0.05  # shortest later trial, share of the rounds trained
    longest_trial: float = 0.1  # share of the horizon to which uninformative trials grow
    box: float = 0.3  # first largest step of a candidate, edge of the unit cube
    largest_box: float = 1.0  # edge of the unit cube
    smallest_box: float = 0.1  # edge of the unit cube
    widening: float = 1.5  # factor of the box after uninformative trials
    narrowing: float = 0.75  # factor of the box after trials without success

    # Phases of a run
    rate_search_share: float = 0.2  # share of the horizon in which learning rates are searched
    trials_share: float = 0.8  # share of the horizon in which there are trials
    final_segment: float = 0.05  # share of the horizon played at once after the trials
    early_share: float = 0.1  # share of the horizon in which nothing counts as a stall
    stall_wait: float = 1.5  # factor of the rounds trained before the next search after a stall
    patience: float = 2.0  # factor of the rounds trained before the next trials after a failure
    short_patience: float = (
        1.3  # the same factor where the run learns little, so that trials are cheap
    )
    fall: float = 0.7  # log loss behind the best level that counts as a fall (twice the loss)
    max_falls: int = 6  # returns to an earlier state
    learnt_gain: float = (
        0.02  # log loss gained since the first query by a run that has begun to learn
    )
    restart_due: float = 0.08  # share of the horizon trained without learning before a restart
    restart_share: float = 0.5  # share of the horizon in which a run may restart
    max_restarts: int = 2  # restarts

    # Search of the learning rate
    conclusive_difference: float = (
        0.1  # difference, as an advantage, from which a search is conclusive
    )
    tie_difference: float = 0.03  # difference, as an advantage, up to which rates are tied
    slight_lead: float = 0.01  # log loss; a lead up to this is not worth a change ...
    slight_share: float = 0.05  # ... nor is one up to this share of the range of levels
    max_ties: int = 1  # consecutive rates tied with the rate before
    extended_rates: int = 4  # rates that are extended after inconclusive first rounds
    extension: int = 5  # rounds by which close rates, or rates after a stall, are extended
    least_growth: float = 0.03  # log loss; smallest advantage of a smaller rate that has grown
    least_growth_larger: float = 0.005  # the same of a larger rate, which few rounds underrate
    larger_lag: float = 0.01  # log loss that a larger rate may be behind at first
    below_fastest: float = (
        0.3  # decades between the fastest rate and the chosen one (half the rate)
    )
    same_rate: float = 0.05  # decades; rates this close count as one
    bound_margin: float = 0.3  # decades; a bound closer than this is not tried
    diverged_gap: float = 1.0  # log loss behind the best level that counts as diverged
    lost_advantage: float = -0.3  # advantage below which the state of a trial is not kept
    diverged_advantage: float = -1.0  # advantage of a trial that diverged
    rescuing_advantage: float = 3.0  # advantage of a finite trial over an incumbent that diverged
    largest_extrapolation: float = 5.0  # largest factor from an advantage to that at the end
    least_log_time: float = 0.05  # smallest log-time that is left, for that factor

    # Switching off
    on_threshold: float = 1 / 3  # share of a range from which a strength is switched off in a trial
    off_advantage: float = 0.1  # advantage that is worth switching off
    off_difference: float = 0.2  # size of an advantage that ends the comparison
    off_repeat: float = 0.2  # size of an advantage below which the comparison is repeated once
    off_extensions: int = 2  # extensions of the comparison, each of twice the rounds

    # Candidates
    num_candidates: int = 128  # candidates of a draw
    stay_probability: float = 0.1  # probability that a hyperparameter keeps its value
    half_step_probability: float = 1 / 3  # probability of half a step
    option_probability: float = 0.4  # probability of another option, at a box of one half
    least_distance: float = 0.05  # smallest largest column difference of two candidates, unit cube

    # Trials of several hyperparameters
    max_failures: int = 3  # trials from a state, of which none is better
    trials_per_success: int = 1  # further trials for each better one
    lasting_share: float = 0.8  # share of an advantage left after as many rounds again
    earned_share: float = 0.1  # share of a gain, in log loss, that is added to the account
    sure_deviations: float = (
        1.64  # standard deviations by which a trial has to be better (p = 0.95)
    )
    least_advantage: float = 0.1  # advantage that is worth a change
    uninformative: float = 0.05  # size of an advantage below which a trial was uninformative
    time_offset: float = 0.02  # share of the horizon added to the rounds before their log is taken

    # Gaussian process of differences
    lengthscale: float = 0.7  # edge of the unit cube
    forgetting: float = 0.7  # decay of correlation per unit of log-time
    prior_scale: float = 0.3  # prior median of a column's scale, as an advantage
    recent_correlation: float = (
        0.6  # correlation in time from which a difference is used to fit scales
    )
    centre_advantage: float = 0.1  # prior advantage of the middle of a range over its end
    lowest_advantage: float = -1.0  # observed advantages are clipped to this ...
    highest_advantage: float = (
        1.5  # ... and to this: the depth of a failure says nothing of the best
    )

    # Diagnosis
    fewest_queries: int = 3  # queries with a metric before there is a verdict
    failed_share: float = 2 / 3  # share of failed or untold queries that suggests a mistake
    worsening: float = 0.5  # log loss by which a metric got worse that should perhaps be maximized


CONSTANTS = TwinConstants()
