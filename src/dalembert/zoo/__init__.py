"""Ready mechanisms: those of the papers, of the benchmark literature, and small ones with closed forms.

Each is a function that returns a ``Mechanism`` with its starting state set; parameters are keywords in SI units:

    sim = da.Simulation(da.zoo.double_four_bar(), da.Variational(dt=0.01))
"""
from dalembert.zoo.andrews_squeezer import andrews_squeezer
from dalembert.zoo.biped import biped
from dalembert.zoo.box_drop import box_drop, contact_cylinder
from dalembert.zoo.bricard import bricard
from dalembert.zoo.cart_pole import cart_pole
from dalembert.zoo.chains_on_ground import snake, sphere_chain
from dalembert.zoo.character import character, character_motion
from dalembert.zoo.door import door, rubbing_door
from dalembert.zoo.exoskeleton import exoskeleton, exoskeleton_aims, exoskeleton_tracking
from dalembert.zoo.fast_pendulum import fast_pendulum
from dalembert.zoo.figure import animatronic_figure, figure_motion
from dalembert.zoo.fingers import cable_finger, curling_finger
from dalembert.zoo.five_bar import five_bar
from dalembert.zoo.four_bar import double_four_bar, four_bar_chain, n_four_bar
from dalembert.zoo.free_body import free_body, t_handle
from dalembert.zoo.hoberman import hoberman_exact, hoberman_inertia, hoberman_opening, hoberman_sphere
from dalembert.zoo.hopper import hopper, hopper_turn
from dalembert.zoo.n_link_loop import n_link_loop
from dalembert.zoo.oscillator import damped_oscillator, mass_spring
from dalembert.zoo.pendulum import double_pendulum, pendulum
from dalembert.zoo.point_pendulum import conical_pendulum, simple_pendulum
from dalembert.zoo.quadruped import Gait, leg_controller, leg_torques, quadruped
from dalembert.zoo.redmax import redmax_scene
from dalembert.zoo.satellite import SatelliteDesign, deployment, satellite_drives, solar_panel_satellite
from dalembert.zoo.slider_crank import slider_crank
from dalembert.zoo.spline_shoulder import spline_shoulder
from dalembert.zoo.strand_pendulum import strand_pendulum
from dalembert.zoo.three_link_loop import three_link_loop
from dalembert.zoo.tops import heavy_top, spinning_top
from dalembert.zoo.walker import WalkerDesign, dance, walker_drives, walker_legs, walker_motion

__all__ = [
    "Gait", "SatelliteDesign", "WalkerDesign", "andrews_squeezer", "animatronic_figure", "biped", "box_drop", "bricard", "cable_finger",
    "cart_pole", "character", "character_motion", "conical_pendulum", "contact_cylinder", "curling_finger", "damped_oscillator", "dance",
    "deployment", "door", "double_four_bar", "double_pendulum", "exoskeleton", "exoskeleton_aims", "exoskeleton_tracking", "fast_pendulum",
    "figure_motion", "five_bar", "four_bar_chain", "free_body", "heavy_top", "hoberman_exact", "hoberman_inertia", "hoberman_opening",
    "hoberman_sphere", "hopper", "hopper_turn", "leg_controller", "leg_torques", "mass_spring", "n_four_bar", "n_link_loop", "pendulum", "quadruped",
    "redmax_scene", "rubbing_door", "satellite_drives", "simple_pendulum", "slider_crank", "snake", "solar_panel_satellite", "sphere_chain",
    "spinning_top", "spline_shoulder", "strand_pendulum", "t_handle", "three_link_loop", "walker_drives", "walker_legs", "walker_motion",
]
